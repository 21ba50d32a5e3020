#include "brrr/runtime/stages.h"

#include <algorithm>

#include "brrr/autodiff/grad.h"
#include "brrr/graph/call.h"
#include "brrr/graph/trace.h"

namespace brrr::runtime {
namespace {

// The same settings on the null device, where replaying a graph takes no memory.
Attrs on_null_device(const Attrs& attrs) {
  Attrs changed;
  for (const Attr& attr : attrs)
    changed.add(std::holds_alternative<Device>(attr.value) ? Attr{attr.name, Device::null()}
                                                           : attr);
  return changed;
}

}  // namespace

std::vector<GraphStage> graph_stages() {
  std::vector<GraphStage> stages{{"joint", "forward, backward and update as traced"}};
  for (const compiler::Backend* backend : compiler::known_backends()) {
    for (const compiler::GraphPass& pass : backend->passes) {
      const bool is_known = std::any_of(stages.begin(), stages.end(), [&](const GraphStage& stage) {
        return stage.name == pass.name;
      });
      if (!is_known) stages.push_back({pass.name, pass.description});
    }
  }
  return stages;
}

const graph::Graph* PlannedProgram::find(std::string_view stage) const {
  for (const StageGraph& each : graphs) {
    if (each.stage == stage) return &each.graph;
  }
  return nullptr;
}

PlannedProgram plan_program(graph::Graph joint, const compiler::PipelineOptions& options) {
  compiler::PipelineOptions keeping = options;
  keeping.keep_graphs = true;
  compiler::CompiledProgram made = compiler::run_pipeline(std::move(joint), keeping, thread_pool());
  PlannedProgram program{
      .graphs = {}, .kernels = std::move(made.kernels.list), .plan = std::move(made.kernels.plan)};
  for (compiler::PassRecord& pass : made.passes) {
    if (pass.graph)
      program.graphs.push_back(
          {pass.name == "trace" ? "joint" : pass.name, std::move(*pass.graph)});
  }
  return program;
}

compiler::RematRates remat_rates(const hardware::Rates& rates) {
  compiler::RematRates remat;
  remat.bytes_per_second = rates.grid("bandwidth").values.back();  // of what was used longest ago
  if (const hardware::RateGrid* products = rates.find("matmul.nn"))
    remat.contraction_flops_per_second = products->largest();
  if (const hardware::RateGrid* tile = rates.find("tile.mul"))
    remat.elementwise_flops_per_second = tile->largest() * rates.threads;
  if (rates.find("fork_join")) remat.launch_seconds = rates.number("fork_join");
  return remat;
}

bool has_backward(const graph::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const graph::Node& node) { return node.phase != graph::Phase::forward; });
}

graph::Graph differentiate(const graph::Graph& forward) {
  check(!forward.outputs.empty() && is_float(forward.type(forward.outputs[0]).dtype) &&
            numel(forward.type(forward.outputs[0]).shape) == 1,
        "differentiate: the first output of the graph must be one float, the loss");
  for (const graph::StateSlot& state : forward.states)
    check(!state.is_written(), "differentiate: the graph writes \"", state.name,
          "\"; a graph that updates its states has its backward part already");
  graph::Tracer tracer;
  std::vector<Tensor> values(forward.values.size()), leaves;
  for (const graph::GraphInput& input : forward.inputs)
    values[input.value.index()] =
        tracer.add_input(forward.type(input.value), Device::null(), input.name);
  for (const graph::StateSlot& state : forward.states) {
    const TensorType& type = forward.type(state.before);
    const Tensor tensor = empty(type.shape, type.dtype, Device::null());
    tracer.name_state(tensor, state.name);
    values[state.before.index()] = tensor;
    if (is_float(type.dtype)) leaves.push_back(tensor.require_grad());
  }
  for (const graph::Node& node : forward.nodes) {
    Tensors operands;
    for (graph::ValueId id : node.inputs) operands.push_back(values[id.index()]);
    const Tensors results = call_op(*node.op, operands, on_null_device(node.attrs));
    for (int i = 0; i < results.size(); ++i) values[node.outputs[i].index()] = results[i];
  }
  std::vector<Tensor> outputs;
  for (graph::ValueId id : forward.outputs) outputs.push_back(values[id.index()]);
  for (const Tensor& gradient : grad(outputs[0], leaves)) outputs.push_back(gradient);
  return tracer.finish(outputs);
}

}  // namespace brrr::runtime
