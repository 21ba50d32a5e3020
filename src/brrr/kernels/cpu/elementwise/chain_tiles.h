// Runs of cheap f32 ops on one value: loaded once, kept in registers through all of them, stored once.
// Each op does what its own tile function does, so a chain has the bits of its ops one by one.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

struct ChainOp {
  ChainCode code = ChainCode::none;
  int input = -1;         // which of the call's inputs is the other operand; -1 for ops of one
  bool reversed = false;  // code(other, value) instead of code(value, other)
};

inline constexpr int kMaxChainInputs = 64;

// output[i] = the last op of ( ... the first op of inputs[0][i]). The output may be one of the inputs.
struct ChainCall {
  std::span<const ChainOp> ops;
  const float* const* inputs;
  uint64_t constants;  // bit i: inputs[i] is one number for all elements
  float* output;
  int64_t count;
};
void run_chain(const ChainCall& call);

}  // namespace brrr::kernels
