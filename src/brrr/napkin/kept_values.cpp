#include "brrr/napkin/kept_values.h"

#include <algorithm>
#include <map>

#include "brrr/runtime/predict.h"

namespace brrr {
namespace {

// The value that a view shows.
ValueId base_of(const Graph& graph, ValueId id) {
  for (;;) {
    const NodeId node = graph.value(id).node;
    if (!node.valid() || !graph.node(node).op->view) return id;
    id = graph.node(node).inputs[0];
  }
}

std::string node_name(const Node& node, size_t index) {
  return join_text(node.op->name, " (node ", index, ")");
}

// One node as a program of its own: its operands are inputs, nothing is warm.
double seconds_alone(const Graph& graph, const Node& node, const Rates& rates) {
  Graph alone;
  ValueIds inputs;
  for (ValueId id : node.inputs) {
    inputs.push_back(alone.add_value(graph.type(id)));
    alone.inputs.push_back({"operand", inputs[inputs.size() - 1]});
  }
  std::vector<TensorType> types;
  for (ValueId id : node.outputs) types.push_back(graph.type(id));
  const NodeId made = alone.add_node(*node.op, node.attrs, inputs, types);
  alone.outputs.push_back(alone.node(made).outputs[0]);
  const KernelList list = lower(alone, fuse(alone));
  return predict(list, plan_memory(list), rates).seconds();
}

}  // namespace

std::vector<KeptValue> kept_values(const Graph& joint, const Rates& rates) {
  std::map<int32_t, KeptValue> found;
  for (size_t n = 0; n < joint.nodes.size(); ++n) {
    const Node& node = joint.nodes[n];
    if (node.phase == Phase::forward || node.op->view) continue;
    for (ValueId input : node.inputs) {
      const ValueId id = base_of(joint, input);
      const NodeId maker = joint.value(id).node;
      if (!maker.valid() || joint.node(maker).phase != Phase::forward || found.count(id.value))
        continue;
      const TensorType& type = joint.type(id);
      const Node& made = joint.node(maker);
      if (numel(type.shape) <= 1) continue;  // numbers
      found[id.value] = {.value = id,
                         .made_by = node_name(made, maker.index()),
                         .needed_by = node_name(node, n),
                         .type = type,
                         .bytes = storage_bytes(type.dtype, numel(type.shape)),
                         .recompute_flops = cost_of(joint, made).flops,
                         .recompute_seconds = seconds_alone(joint, made, rates)};
    }
  }
  std::vector<KeptValue> values;
  for (auto& [id, value] : found) values.push_back(std::move(value));
  std::stable_sort(values.begin(), values.end(),
                   [](const KeptValue& a, const KeptValue& b) { return a.bytes > b.bytes; });
  return values;
}

}  // namespace brrr
