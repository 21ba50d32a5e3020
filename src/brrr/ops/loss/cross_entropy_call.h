// What cross_entropy and its gradient share: checks of operands, targets, and samples.
#pragma once

#include <vector>

#include "brrr/graph/op_def.h"
#include "brrr/ops/loss/cross_entropy.h"

namespace brrr {

// Throws Error unless smoothing, cap and z_loss are within bounds.
void check_bounds(const CrossEntropyOptions& options, std::string_view op);
// logits [rows, classes], targets [rows], options within bounds; throws Error naming the op.
void require_rows(const InferCall& call, int logits, int targets);

// The class of each row, -1 where it is ignored. Throws Error on a target that names no class.
std::vector<int64_t> read_targets(const Operand& targets, int64_t classes,
                                  const CrossEntropyOptions& options);

// For compositions: bools [rows] of the rows that count, and the rest of the loss from capped logits.
Tensor counted_rows(const Tensor& targets, const CrossEntropyOptions& options);

// Samples of logits and targets with each option, alone and together.
struct CrossEntropySample {
  Tensor logits, targets;
  Attrs attrs;
};
std::vector<CrossEntropySample> cross_entropy_cases();

}  // namespace brrr
