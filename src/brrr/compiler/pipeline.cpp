#include "brrr/compiler/pipeline.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "brrr/base/join_names.h"
#include "brrr/compiler/codegen_cuda.h"
#include "brrr/compiler/epilogues.h"
#include "brrr/compiler/expand.h"
#include "brrr/compiler/fp8_products.h"
#include "brrr/compiler/join_losses.h"
#include "brrr/compiler/simplify.h"
#include "brrr/compiler/verify_plan.h"
#include "brrr/graph/repeat.h"
#include "brrr/graph/verify.h"

namespace brrr {
namespace {

// A pass from graph to graph. It sees the body of a repeat as a graph of its own, before the program
// around it; states and inputs keep their types. One that `enters_bodies` sees the program alone, and takes
// the bodies in it along.
struct GraphPass {
  std::string_view name;
  bool PipelineOptions::*enabled;  // null: it says what the program means, and always runs
  Graph (*run)(const Graph& graph, const PipelineOptions& options);
  bool only_cuda = false;
  bool enters_bodies = false;

  bool is_wanted(const PipelineOptions& options) const {
    return (!enabled || options.*enabled) && (!only_cuda || options.is_cuda());
  }
};

// ---- how each device wants its kernels: the CPU streams tiles through them, a GPU gets them as text ----
FuseOptions fuse_options(const PipelineOptions& options) {
  // Without a compiler for generated kernels every op runs by its own.
  FuseOptions fusing{.enabled = options.fuse && (!options.is_cuda() || options.is_generated())};
  if (options.is_generated()) {
    constexpr int kMaxNodes = 512;    // values between them are registers, not tiles in a cache
    constexpr int kMaxNumbers = 480;  // pointers in the 4 KiB that parameters of a launch may have
    fusing.max_nodes = kMaxNodes;
    fusing.max_numbers = kMaxNumbers;
    fusing.streams = generated_streams;
  }
  return fusing;
}

LowerOptions lower_options(const PipelineOptions& options) {
  return {.group = fuse_options(options).enabled && options.group_kernels,
          .generated = options.is_generated(),
          .land = options.is_cuda() && options.land_results};
}

void select_kernels(KernelList& list, const PipelineOptions& options, ThreadPool& pool) {
  if (options.is_generated()) generate_kernels(list);
  options.is_cuda() ? select_cuda_workspaces(list) : select_workspaces(list, pool);
}

PlanOptions plan_options(const PipelineOptions& options) {
  constexpr int64_t kCudaAlignment = 256;
  return {.share = options.plan_memory,
          .alignment = options.is_cuda() ? kCudaAlignment : kArenaAlignment};
}

// ---- what products of a GPU program do to their results ----
template <Graph (*kTake)(const Graph& graph, Device device, const EpilogueOptions& options)>
Graph run_epilogues(const Graph& graph, const PipelineOptions& options) {
  if (const std::optional<Device> device = options.device)
    return kTake(graph, *device, options.epilogues);
  return graph;
}
constexpr GraphPass kGpuPasses[] = {
    {"join_losses", &PipelineOptions::join_losses,
     [](const Graph& graph, const PipelineOptions&) { return join_losses(graph); }, true},
    {"gelu_epilogue", &PipelineOptions::gelu_epilogue, run_epilogues<take_gelu_epilogues>, true},
    {"sum_epilogue", &PipelineOptions::sum_epilogue, run_epilogues<take_sum_epilogues>, true},
    {"add_epilogue", &PipelineOptions::add_epilogue, run_epilogues<take_add_epilogues>, true},
    {"fp8_products", &PipelineOptions::fp8_products,
     [](const Graph& graph, const PipelineOptions&) { return take_fp8_products(graph); }, true}};

// What the budget of recomputation is held against: the graph as it will run.
PlannedGraph plan_graph(Graph graph, const PipelineOptions& options) {
  for (const GraphPass& pass : kGpuPasses) {
    if (pass.is_wanted(options)) graph = pass.run(graph, options);
  }
  PlannedGraph planned{
      .kernels = lower(graph, fuse(graph, fuse_options(options)), lower_options(options)),
      .memory = {}};
  select_kernels(planned.kernels, options, thread_pool());
  planned.memory = plan_memory(planned.kernels, plan_options(options));
  return planned;
}

constexpr GraphPass kGraphPasses[] = {
    {"precision", nullptr,
     [](const Graph& graph, const PipelineOptions& options) {
       return apply_precision(graph, options.precision);
     },
     false, true},
    {"simplify", &PipelineOptions::simplify,
     [](const Graph& graph, const PipelineOptions&) { return simplify(graph); }},
    {"chunk_head", &PipelineOptions::chunk_head,
     [](const Graph& graph, const PipelineOptions& options) {
       return chunk_heads(graph, options.head);
     }},
    {"rematerialize", &PipelineOptions::rematerialize,
     [](const Graph& graph, const PipelineOptions& options) {
       return rematerialize(graph, options.remat,
                            [&](const Graph& candidate) { return plan_graph(candidate, options); });
     }},
    kGpuPasses[0],
    kGpuPasses[1],
    kGpuPasses[2],
    kGpuPasses[3],
    kGpuPasses[4],
};

// Passes behind them that choose better kernels or places and can be left out.
struct NamedSwitch {
  std::string_view name;
  bool PipelineOptions::*enabled;
};
constexpr NamedSwitch kLaterPasses[] = {{"fuse", &PipelineOptions::fuse},
                                        {"land_results", &PipelineOptions::land_results},
                                        {"group_kernels", &PipelineOptions::group_kernels},
                                        {"plan_memory", &PipelineOptions::plan_memory}};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Graph apply(const GraphPass& pass, Graph graph, const PipelineOptions& options) {
  for (Node& node : graph.nodes) {
    if (node.body && !pass.enters_bodies)
      node.body = std::make_shared<const Graph>(apply(pass, *node.body, options));
  }
  return pass.run(graph, options);
}

class Pipeline {
 public:
  Pipeline(const PipelineOptions& options, ThreadPool& pool) : options_(options), pool_(pool) {}

  CompiledProgram run(Graph graph) {
    record("trace");
    checked(graph);
    for (const GraphPass& pass : kGraphPasses) {
      if (!pass.is_wanted(options_)) continue;
      timed(pass.name, [&] { graph = apply(pass, std::move(graph), options_); });
      checked(graph);
      // Behind `precision`, whose table names whole ops.
      if (&pass == std::begin(kGraphPasses) && options_.is_cuda()) {
        timed("expand", [&] { graph = expand_for_cuda(graph, *options_.device); });
        checked(graph);
      }
    }
    made_.graph = std::move(graph);
    made_.kernels = make_kernels(made_.graph, made_.regions);
    const double start = now_seconds();
    verify_plan(made_.kernels);
    record("plan_memory").verify_seconds += now_seconds() - start;
    return std::move(made_);
  }

 private:
  // Bodies are lowered and planned before the memory of the kernel that runs them is: it holds theirs.
  KernelProgram make_kernels(const Graph& graph, std::vector<Region>& regions) {
    KernelProgram program;
    timed("fuse", [&] { regions = fuse(graph, fuse_options(options_)); });
    timed("lower", [&] { program.list = lower(graph, regions, lower_options(options_)); });
    for (Kernel& kernel : program.list.kernels) {
      if (kernel.body_graph) make_body(kernel);
    }
    timed("select", [&] { select_kernels(program.list, options_, pool_); });
    timed("plan_memory", [&] { program.plan = plan_memory(program.list, plan_options(options_)); });
    return program;
  }

  void make_body(Kernel& kernel) {
    std::vector<Region> regions;
    auto body = std::make_shared<KernelProgram>(make_kernels(*kernel.body_graph, regions));
    Cost once;
    for (const Kernel& inner : body->list.kernels) once += inner.cost;
    const int64_t times = repeat_node(kernel.attrs).most;
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
    verify(graph, pass.name);
    pass.verify_seconds += now_seconds() - start;
    if (options_.keep_graphs) pass.graph = graph;
  }

  const PipelineOptions& options_;
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
  for (const GraphPass& pass : kGraphPasses) {
    if (pass.enabled) names.push_back(pass.name);
  }
  for (const NamedSwitch& pass : kLaterPasses) names.push_back(pass.name);
  return names;
}

PipelineOptions without(PipelineOptions options, std::string_view passes) {
  while (!passes.empty()) {
    const size_t end = std::min(passes.find(','), passes.size());
    const std::string_view name = passes.substr(0, end);
    passes.remove_prefix(std::min(end + 1, passes.size()));
    bool known = false;
    const auto leave_out = [&](const auto& pass) {
      if (pass.name != name || !pass.enabled) return;
      options.*pass.enabled = false;
      known = true;
    };
    for (const GraphPass& pass : kGraphPasses) leave_out(pass);
    for (const NamedSwitch& pass : kLaterPasses) leave_out(pass);
    if (!known)
      fail("there is no optimising pass named \"", name, "\"; use one of ",
           join_names(optimising_passes()));
  }
  return options;
}

CompiledProgram run_pipeline(Graph graph, const PipelineOptions& options, ThreadPool& pool) {
  return Pipeline(options, pool).run(std::move(graph));
}

}  // namespace brrr
