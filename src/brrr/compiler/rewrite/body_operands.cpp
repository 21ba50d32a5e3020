#include "brrr/compiler/rewrite/body_operands.h"

#include <utility>

#include "brrr/graph/repeat.h"
#include "brrr/ops/op_list.h"

namespace brrr::compiler {

ValueId BodyPorts::give(const std::string& name, const TensorType& type,
                        std::function<ValueId()> outside) {
  const ValueId value = body_.graph.add_value(type);
  body_.graph.inputs.push_back({name, value});
  given_.push_back(std::move(outside));
  return value;
}

void BodyPorts::join_largest(const std::string& name, ValueId each,
                             std::function<void(ValueId)> take) {
  const ValueId before = body_.graph.add_value(body_.type(each));
  const ValueId after = body_.add(maximum_op, {before, each});
  body_.graph.states.push_back({.name = name, .before = before, .after = after});
  joined_.push_back(std::move(take));
}

// Behind the captured operands those that are given, behind the first values of states the zeros of the rest.
ValueIds BodyPorts::add_repeat(GraphBuilder& around, const Node& node, Graph graph,
                               const ValueIds& inputs) const {
  const auto body = std::make_shared<const Graph>(std::move(graph));
  RepeatNode parts = graph::repeat_node(node.attrs);
  ValueIds operands;
  for (int i = 0; i < parts.first_initial(); ++i) operands.push_back(inputs[i]);
  for (const auto& outside : given_) operands.push_back(outside());
  for (int i = parts.first_initial(); i < inputs.size(); ++i) operands.push_back(inputs[i]);
  std::vector<TensorType> types;
  for (const StateSlot& state : body->states) types.push_back(body->type(state.before));
  const int traced = parts.states();
  for (size_t s = static_cast<size_t>(traced); s < types.size(); ++s)
    operands.push_back(around.zeros(types[s]));
  parts.captured += static_cast<int>(given_.size());
  parts.initial += static_cast<int>(joined_.size());

  const NodeId made = around.graph.add_node(graph::repeat_op, graph::repeat_attrs(parts), operands,
                                            types, node.phase, node.scope, body);
  around.graph.nodes.back().segment = node.segment;
  const ValueIds outputs = around.graph.node(made).outputs;
  ValueIds results;
  for (int s = 0; s < traced; ++s) results.push_back(outputs[s]);
  for (size_t j = 0; j < joined_.size(); ++j) joined_[j](outputs[traced + static_cast<int>(j)]);
  return results;
}

}  // namespace brrr::compiler
