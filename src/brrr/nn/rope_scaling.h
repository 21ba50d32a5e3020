// Rotary positions of models whose context was stretched after training: pairs that turn slowly turn more
// slowly still, so that a position far away looks like one that the model has seen.
#pragma once

#include <cstdint>
#include <vector>

#include "brrr/ops/attention/rope.h"

namespace brrr {

enum class RopeStretch : uint8_t {
  none,
  linear,  // every frequency is divided by `factor`
  llama3   // of Llama 3.1: those of long waves alone, and a smooth passage in between
};

struct RopeScaling {
  RopeStretch kind = RopeStretch::none;
  double factor = 1;
  // Of llama3, with waves counted in the context that the model was trained with: a pair that turns round
  // less than `low_turns` times in it is stretched, one that does so more than `high_turns` times is not.
  double low_turns = 1, high_turns = 4;
  int64_t trained_context = 8192;
};

// The angle that each of `pairs` pairs turns by from one position to the next, f64.
std::vector<double> scaled_frequencies(double base, int64_t pairs, const RopeScaling& scaling);

// What rope() takes in place of positions (ops/attention/rope.h), by these frequencies, f64 [pairs].
Tensor rope_table_of(const Tensor& positions, const Tensor& frequencies, DType dtype);

}  // namespace brrr
