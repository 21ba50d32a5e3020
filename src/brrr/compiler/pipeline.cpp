#include "brrr/compiler/pipeline.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "brrr/base/join_names.h"
#include "brrr/compiler/lower/verify_plan.h"
#include "brrr/graph/repeat.h"
#include "brrr/graph/verify.h"

namespace brrr::compiler {
namespace {

// What follows the passes from graph to graph on every backend, and can be left out: fusion, copies elided by strided
// results, kernels that run in one launch, buffers that share bytes.
constexpr std::string_view kLaterPasses[] = {"fuse", "land_results", "group_kernels",
                                             "plan_memory"};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Graph apply(const GraphPass& pass, Graph graph, const PassContext& context) {
  for (Node& node : graph.nodes) {
    if (node.body && !pass.enters_bodies)
      node.body = std::make_shared<const Graph>(apply(pass, *node.body, context));
  }
  return pass.run(graph, context);
}

class Pipeline {
 public:
  Pipeline(const PipelineOptions& options, ThreadPool& pool)
      : options_(options),
        device_(options.device.value_or(Device::cpu())),
        target_(options.target ? *options.target : target_of(device_)),
        backend_(*target_.backend),
        pool_(pool) {}

  CompiledProgram run(Graph graph) {
    record("trace");
    checked(graph);
    for (size_t i = 0; i < backend_.passes.size(); ++i) {
      const GraphPass& pass = backend_.passes[i];
      if (!is_wanted(pass)) continue;
      timed(pass.name, [&] { graph = apply(pass, std::move(graph), context_at(i)); });
      checked(graph);
    }
    made_.graph = std::move(graph);
    made_.kernels = make_kernels(made_.graph, made_.regions);
    const double start = now_seconds();
    verify_plan(made_.kernels);
    record("plan_memory").verify_seconds += now_seconds() - start;
    return std::move(made_);
  }

 private:
  bool is_wanted(const GraphPass& pass) const {
    return pass.is_required || options_.runs(pass.name);
  }
  PassContext context_at(size_t pass) {
    return {options_, target_, device_,
            [this, pass](const Graph& graph) { return plan_graph(graph, pass + 1); }};
  }

  FuseOptions fuse_options() const {
    FuseOptions fusing = backend_.fuse_options(target_);
    fusing.enabled = fusing.enabled && options_.runs("fuse");
    return fusing;
  }
  LowerOptions lower_options() const {
    LowerOptions lowering = backend_.lower_options(target_);
    lowering.group = fuse_options().enabled && options_.runs("group_kernels");
    if (!options_.runs("land_results")) lowering.strided_outputs = nullptr;
    return lowering;
  }
  PlanOptions plan_options() const {
    return {.share = options_.runs("plan_memory"), .alignment = backend_.alignment};
  }

  // What a budget of memory is held against: the graph as it will run, with the passes that are still to come.
  PlannedGraph plan_graph(Graph graph, size_t first_pass) {
    for (size_t i = first_pass; i < backend_.passes.size(); ++i) {
      const GraphPass& pass = backend_.passes[i];
      if (is_wanted(pass)) graph = pass.run(graph, context_at(i));
    }
    PlannedGraph planned{.kernels = lower(graph, fuse(graph, fuse_options()), lower_options()),
                         .memory = {}};
    backend_.select(planned.kernels, target_, thread_pool());
    planned.memory = plan_memory(planned.kernels, plan_options());
    return planned;
  }

  // Bodies are lowered and planned before the memory of the kernel that runs them is: it holds theirs.
  KernelProgram make_kernels(const Graph& graph, std::vector<Region>& regions) {
    KernelProgram program;
    timed("fuse", [&] { regions = fuse(graph, fuse_options()); });
    timed("lower", [&] { program.list = lower(graph, regions, lower_options()); });
    for (Kernel& kernel : program.list.kernels) {
      if (kernel.body_graph) make_body(kernel);
    }
    timed("select", [&] { backend_.select(program.list, target_, pool_); });
    timed("plan_memory", [&] { program.plan = plan_memory(program.list, plan_options()); });
    return program;
  }

  void make_body(Kernel& kernel) {
    std::vector<Region> regions;
    auto body = std::make_shared<KernelProgram>(make_kernels(*kernel.body_graph, regions));
    Cost once;
    for (const Kernel& inner : body->list.kernels) once += inner.cost;
    const int64_t times = graph::repeat_node(kernel.attrs).most;
    kernel.cost = {.flops = times * once.flops,
                   .bytes_read = times * once.bytes_read,
                   .bytes_written = times * once.bytes_written};
    kernel.body = std::move(body);
  }

  PassRecord& record(std::string_view name) {
    for (PassRecord& known : made_.passes) {
      if (known.name == name) return known;
    }
    made_.passes.push_back({.name = name, .graph = std::nullopt});
    return made_.passes.back();
  }

  template <typename Step>
  void timed(std::string_view name, const Step& step) {
    const double start = now_seconds();
    step();
    record(name).seconds += now_seconds() - start;
  }

  // What the newest pass made.
  void checked(const Graph& graph) {
    PassRecord& pass = made_.passes.back();
    const double start = now_seconds();
    graph::verify(graph, pass.name);
    pass.verify_seconds += now_seconds() - start;
    if (options_.keep_graphs) pass.graph = graph;
  }

  const PipelineOptions& options_;
  const Device device_;
  const Target target_;
  const Backend& backend_;
  ThreadPool& pool_;
  CompiledProgram made_;
};

}  // namespace

double CompiledProgram::seconds() const {
  double total = 0;
  for (const PassRecord& pass : passes) total += pass.seconds + pass.verify_seconds;
  return total;
}

std::vector<std::string_view> optimising_passes() {
  std::vector<std::string_view> names;
  const auto add = [&](std::string_view name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const Backend* backend : known_backends()) {
    for (const GraphPass& pass : backend->passes) {
      if (!pass.is_required) add(pass.name);
    }
  }
  for (std::string_view name : kLaterPasses) add(name);
  return names;
}

PipelineOptions without(PipelineOptions options, std::string_view passes) {
  const std::vector<std::string_view> known = optimising_passes();
  while (!passes.empty()) {
    const size_t end = std::min(passes.find(','), passes.size());
    const std::string_view name = passes.substr(0, end);
    passes.remove_prefix(std::min(end + 1, passes.size()));
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail("there is no optimising pass named \"", name, "\"; use one of ", join_names(known));
    options.without.emplace(name);
  }
  return options;
}

CompiledProgram run_pipeline(Graph graph, const PipelineOptions& options, ThreadPool& pool) {
  return Pipeline(options, pool).run(std::move(graph));
}

}  // namespace brrr::compiler
