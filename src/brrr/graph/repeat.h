// A node that runs a graph of its own several times: gradient accumulation as a loop, not unrolled.
//
//   node inputs    count, sliced..., captured..., initial...
//   body inputs    index, one slice of each `sliced`, captured...
//   body states    what goes from one iteration to the next: first `sums`, which start at zero, then
//                  values that start as `initial`
//   node outputs   the states after the last iteration
//
// The count is i64[] and known when the call starts: an input of the program, or a number.
#pragma once

#include "brrr/graph/graph.h"

namespace brrr::graph {

// Not a function of tensors alone, and so not in all_ops(): it means nothing without a body.
extern const OpDef repeat_op;

// How the operands of a repeat node are laid out.
struct RepeatNode {
  int sliced = 0;    // operands that the body sees one slice of, along their first axis
  int captured = 0;  // operands that the body sees whole
  int sums = 0;      // states that start at zero
  int initial = 0;   // states that start as an operand
  int64_t most = 0;  // the largest count: the length of the sliced axes, or the number itself

  int first_captured() const { return 1 + sliced; }
  int first_initial() const { return 1 + sliced + captured; }
  int states() const { return sums + initial; }
  // Which operand state `s` starts as; -1 where it starts at zero.
  int initial_of(int s) const { return s < sums ? -1 : first_initial() + s - sums; }
};
RepeatNode repeat_node(const Attrs& attrs);
Attrs repeat_attrs(const RepeatNode& parts);

// Throws InternalError where operands, attributes and body do not fit each other.
TensorTypes infer_repeat(const Graph& graph, const Node& node);
// `most` times the cost of the body.
Cost cost_of_repeat(const Node& node);

// What a count must be between; throws Error otherwise.
void check_repeat_count(int64_t count, const RepeatNode& parts);

}  // namespace brrr::graph
