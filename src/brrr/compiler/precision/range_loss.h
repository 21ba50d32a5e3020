// What a program in mixed precision loses to the range of its low types: every value that it stores in 16 or 8 bits
// beside the value that the same op gives for the same operands in f32. The graph is interpreted, so a count costs
// far more than a step.
#pragma once

#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {

struct RangeLoss {
  int64_t stored = 0;      // elements made in a low type
  int64_t underflows = 0;  // of them not 0 in f32, and 0 as they are stored
  int64_t overflows = 0;   // finite in f32, and beyond the largest number of the low type

  RangeLoss& operator+=(const RangeLoss& other);
  bool operator==(const RangeLoss&) const = default;
};

// By part of the step; what is recomputed counts as forward.
struct RangeLosses {
  RangeLoss forward, backward, update;
  RangeLoss all() const;
};

// Of one run with these inputs and the states as they are; nothing is written.
RangeLosses count_range_losses(const Graph& graph, std::span<const Tensor> inputs);

}  // namespace brrr::compiler
