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

namespace brrr::graph {

using ValueId = StrongId<struct ValueTag>;
using NodeId = StrongId<struct NodeTag>;

// Which part of a training step a node belongs to; `recompute` is a forward node run again for the
// backward part.
enum class Phase : uint8_t { forward, backward, update, recompute };
std::string_view phase_name(Phase phase);

struct Value {
  TensorType type;
  NodeId node;     // who makes it; none for inputs and states
  int output = 0;  // which output of that node
};

using ValueIds = SmallVector<ValueId, 4>;

using SegmentId = StrongId<struct SegmentTag>;

// A part of the forward pass with a name: a layer, or what a user gave to checkpoint().
struct Segment {
  std::string name;
  SegmentId parent;  // the segment around it; none for the outermost
  bool checkpoint =
      false;  // values that only this segment reads are not kept for the backward part
};
struct Graph;

struct Node {
  const OpDef* op;
  Attrs attrs;
  ValueIds inputs;
  ValueIds outputs;
  Phase phase = Phase::forward;
  std::string_view scope;             // the module that called it (graph/scope.h); empty: none
  SegmentId segment;                  // the innermost; none outside of all
  std::shared_ptr<const Graph> body;  // of repeat_op, none for every other op
};

inline bool is_matmul(const Node& node) { return is_matmul(*node.op); }

struct StateSlot {
  std::string name;
  ValueId before;
  ValueId after;  // the same as `before` when the program does not write it
  Tensor tensor;  // the elements themselves; undefined in a graph that was read from text
  // Index of the state that this is a cast of, or -1. Such a copy is made anew before a call when its
  // master was written by anybody but this program, and a program that writes the master writes it too.
  int copy_of = -1;
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
  std::vector<ValueId> seeds;  // the gradients of results that backward walks start from
  std::vector<Segment> segments;

  const Value& value(ValueId id) const { return values[id.index()]; }
  const TensorType& type(ValueId id) const { return values[id.index()].type; }
  const Node& node(NodeId id) const { return nodes[id.index()]; }

  ValueId add_value(const TensorType& type);
  // Adds a node with fresh outputs of these types behind all others.
  NodeId add_node(const OpDef& op, const Attrs& attrs, const ValueIds& node_inputs,
                  std::span<const TensorType> types, Phase phase = Phase::forward,
                  std::string_view scope = {}, std::shared_ptr<const Graph> body = {});
  // What a pass does with a node that it keeps: the same op in the same part of the step, on the
  // values that stand for its operands in this graph.
  NodeId add_copy(const Graph& from, const Node& node, const ValueIds& node_inputs);
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

}  // namespace brrr::graph
