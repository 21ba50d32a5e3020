#include "brrr/graph/interpret.h"

#include "brrr/graph/basic_ops.h"
#include "brrr/graph/call.h"
#include "brrr/graph/repeat.h"

namespace brrr::graph {
namespace {

void require_type(const Tensor& given, const TensorType& type, std::string_view name) {
  check(given.defined() && given.shape() == type.shape && given.dtype() == type.dtype,
        "interpret: \"", name, "\" is ", given.defined() ? to_text(given.type()) : "missing",
        " and must be ", type);
}

Tensor new_zeros(const TensorType& type, Device device) {
  return call_one(
      basic_ops().full, {},
      {{"shape", type.shape}, {"dtype", type.dtype}, {"device", device}, {"value", 0.0}});
}

// The loop as it is written: every iteration interprets the body.
Tensors interpret_repeat(const Node& node, const Tensors& operands, const NodeObserver& observe) {
  const RepeatNode parts = repeat_node(node.attrs);
  const int64_t count = operands[0].item<int64_t>();
  check_repeat_count(count, parts);
  std::vector<Tensor> states;
  for (int s = 0; s < parts.states(); ++s) {
    const TensorType& type = node.body->type(node.body->states[static_cast<size_t>(s)].before);
    states.push_back(s < parts.sums ? new_zeros(type, operands[0].device())
                                    : operands[parts.initial_of(s)]);
  }
  for (int64_t i = 0; i < count; ++i) {
    Tensor index = empty({}, DType::i64);
    *index.data<int64_t>() = i;
    std::vector<Tensor> inputs{index};
    for (int k = 1; k < parts.first_captured(); ++k) {
      const Attrs which{{"axis", int64_t{0}}, {"index", i}};
      inputs.push_back(call_one(basic_ops().select, {operands[k]}, which));
    }
    for (int k = parts.first_captured(); k < parts.first_initial(); ++k)
      inputs.push_back(operands[k]);
    states = interpret(*node.body, inputs, states, observe).states;
  }
  Tensors results;
  for (const Tensor& state : states) results.push_back(state);
  return results;
}

}  // namespace

Interpreted interpret(const Graph& graph, std::span<const Tensor> inputs,
                      std::span<const Tensor> states, const NodeObserver& observe) {
  check(inputs.size() == graph.inputs.size(), "interpret: ", inputs.size(),
        " inputs are given, and the graph has ", graph.inputs.size());
  NoGrad nothing_is_recorded;
  std::vector<Tensor> values(graph.values.size());
  const auto give = [&](ValueId id, const Tensor& x, std::string_view name) {
    require_type(x, graph.type(id), name);
    values[id.index()] = x.detach();
    values[id.index()].body().weak = graph.type(id).weak;
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    give(graph.inputs[i].value, inputs[i], graph.inputs[i].name);
  for (size_t i = 0; i < graph.states.size(); ++i) {
    const StateSlot& state = graph.states[i];
    if (state.copy_of >= 0) continue;
    give(state.before, states.empty() ? state.tensor : states[i], state.name);
  }
  for (const StateSlot& state : graph.states) {  // copies are what their masters are, rounded
    if (state.copy_of < 0) continue;
    const StateSlot& master = graph.states[static_cast<size_t>(state.copy_of)];
    values[state.before.index()] = call_one(basic_ops().cast, {values[master.before.index()]},
                                            {{"dtype", graph.type(state.before).dtype}});
  }
  for (const Node& node : graph.nodes) {
    Tensors operands;
    for (ValueId id : node.inputs) operands.push_back(values[id.index()]);
    const Tensors results = node.op->role == OpRole::repeat
                                ? interpret_repeat(node, operands, observe)
                                : call_op(*node.op, operands, node.attrs);
    for (int i = 0; i < results.size(); ++i) values[node.outputs[i].index()] = results[i];
    if (observe) observe(node, operands, results);
  }
  Interpreted result;
  for (ValueId id : graph.outputs) result.outputs.push_back(values[id.index()]);
  for (const StateSlot& state : graph.states) result.states.push_back(values[state.after.index()]);
  return result;
}

}  // namespace brrr::graph
