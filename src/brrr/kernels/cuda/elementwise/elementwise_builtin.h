// The elementwise kernels that are compiled with brrr: any function, layout and dtype, found out at run
// time. Plain structs, since nvcc sees no more C++ than this.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace brrr::kernels {

inline constexpr int kBuiltinOperands = 5;  // inputs and, last, the result
inline constexpr int kBuiltinRank = 8;

struct BuiltinElementwise {
  uint8_t family, function;  // ScalarFunction::Family, and the enum of its family
  uint8_t compute_type;      // ComputeType
  uint8_t operands, rank;
  uint8_t dtypes[kBuiltinOperands];  // DType
  bool flat;                         // every operand is walked in order without gaps
  int64_t count;
  int64_t sizes[kBuiltinRank];
  int64_t strides[kBuiltinOperands][kBuiltinRank];  // of elements
  void* data[kBuiltinOperands];                     // of the first element
  double settings[2];                               // of functions that have some
};

// Puts it on the stream; nothing where the count is 0.
void run_builtin_elementwise(const BuiltinElementwise& call, CUstream_st* stream);

}  // namespace brrr::kernels
