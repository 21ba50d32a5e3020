// What crosses from the forward part of a step to the parts behind it, and what it means to run a set of
// forward nodes again there.
//
// Ops are pure: random ones take their key as an operand, and a state that is written has another value
// from then on. So any set of forward nodes may run again without changing a bit.
#pragma once

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/remat/remat_cost.h"

namespace brrr::compiler {

// By node: whether it runs again in the backward part. Set for forward nodes only.
using NodeSet = std::vector<bool>;

// Facts about a step that no choice changes.
struct StepParts {
  explicit StepParts(const Graph& graph);

  bool is_forward(NodeId node) const { return node.valid() && forward_nodes[node.index()]; }

  std::vector<bool> forward_nodes;        // by node
  std::vector<bool> is_needed_late;       // by value: made in the forward part, read by a later one
  std::vector<bool> is_result;            // by value: returned, or written to a state; alive anyway
  std::vector<std::vector<NodeId>> uses;  // by value
  bool has_crossings = false;             // whether any value is needed late
};

// The set without what nobody asks for: a node runs again when a later part or another such node reads
// its results; a view does when what it shows does.
NodeSet only_asked_for(const Graph& graph, const StepParts& parts, NodeSet again);

// By value: needed in the backward part when `again` runs there, directly, by one of those nodes, or by
// a view that is.
std::vector<bool> asked_late(const Graph& graph, const StepParts& parts, const NodeSet& again);

// Whether `node` lies in `segment` or in one inside it.
bool lies_in(const Graph& graph, const Node& node, SegmentId segment);
SegmentId outermost_segment(const Graph& graph, SegmentId segment);
// The segment with checkpoint() around the node, the outermost; none where there is none.
SegmentId checkpoint_around(const Graph& graph, const Node& node);
// True for a value that nobody outside of `segment` reads in the forward part, by way of views neither. What the
// update alone reads of a layer (the largest magnitudes of 8-bit operands) is a result of it: were it made again for the
// update, all that it is made from would wait until there.
bool is_inner(const Graph& graph, const StepParts& parts, ValueId id, SegmentId segment);

// A name for people: "linear of h.0.mlp.c_fc.weight", with the segment where that is all there is.
std::string name_of(const Graph& graph, ValueId id);

// A value that the forward part makes and keeps for the backward part.
struct KeptValue {
  ValueId value;
  std::string name;
  int64_t bytes = 0;
  NodeId needed_by;              // the first node of a later part that reads it, or a view of it
  double recompute_seconds = 0;  // to make it again from the other kept values
};
// The largest first.
std::vector<KeptValue> kept_values(const Graph& graph, const RematRates& rates = {});

}  // namespace brrr::compiler
