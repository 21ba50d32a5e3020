// The reverse walk over a part of the tape, for rules that run a piece of a program again.
#pragma once

#include <span>
#include <vector>

#include "brrr/autodiff/grad.h"
#include "brrr/graph/tape.h"

namespace brrr {

// A result and the gradient that arrives at it.
struct SeededResult {
  Tensor value, grad;
};

// What arrives at the wanted values from the results, over records not older than `since` (see
// next_sequence): an older value is an end of the walk. Undefined where nothing arrives.
std::vector<Tensor> walk_since(uint64_t since, std::span<const SeededResult> results,
                               std::span<const graph::ValueKey> wanted, const GradOptions& options);

}  // namespace brrr
