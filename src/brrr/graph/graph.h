// A program as data: nodes in the order they run, each an op on values that exist by then. A graph is
// functional (every value is made once and never changes); memory comes later, in the plan.
//
//   inputs    given at every call
//   states    tensors that outlive a call: parameters, optimizer state. A state has a value before the
//             call and, when the program writes it, another after it.
//   outputs   returned by every call
//
// A node may have a body, a graph of its own: `repeat` (graph/repeat.h) runs it several times.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "brrr/base/strong_id.h"
#include "brrr/graph/op_def.h"

namespace brrr {

using ValueId = StrongId<struct ValueTag>;
using NodeId = StrongId<struct NodeTag>;

// Which part of a training step a node belongs to.
enum class Phase : uint8_t { forward, backward, update };
std::string_view phase_name(Phase phase);

struct Value {
  TensorType type;
  NodeId node;     // who makes it; none for inputs and states
  int output = 0;  // which output of that node
};

using ValueIds = SmallVector<ValueId, 4>;

struct Graph;

struct Node {
  const OpDef* op;
  Attrs attrs;
  ValueIds inputs;
  ValueIds outputs;
  Phase phase = Phase::forward;
  std::shared_ptr<const Graph> body;  // of repeat_op, none for every other op
};

struct StateSlot {
  std::string name;
  ValueId before;
  ValueId after;  // the same as `before` when the program does not write it
  Tensor tensor;  // the elements themselves; undefined in a graph that was read from text
  bool is_written() const { return after != before; }
};

struct GraphInput {
  std::string name;
  ValueId value;
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<GraphInput> inputs;
  std::vector<StateSlot> states;
  std::vector<ValueId> outputs;

  const Value& value(ValueId id) const { return values[id.index()]; }
  const TensorType& type(ValueId id) const { return values[id.index()].type; }
  const Node& node(NodeId id) const { return nodes[id.index()]; }

  ValueId add_value(const TensorType& type);
  // Adds a node with fresh outputs of these types behind all others.
  NodeId add_node(const OpDef& op, const Attrs& attrs, const ValueIds& node_inputs,
                  std::span<const TensorType> types, Phase phase = Phase::forward,
                  std::shared_ptr<const Graph> body = {});
};

// The types that `op` gives to operands of these types.
TensorTypes infer_types(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs);
// The types that a node gives to its results, from its op or from its body.
TensorTypes infer_types(const Graph& graph, const Node& node);

// What a node costs, from its op.
Cost cost_of(const Graph& graph, const Node& node);
// The whole program: exact FLOPs, and the bytes that its nodes touch when each runs by itself.
Cost cost_of(const Graph& graph);

// For every value the nodes that read it, in order.
std::vector<std::vector<NodeId>> uses_of(const Graph& graph);

}  // namespace brrr
