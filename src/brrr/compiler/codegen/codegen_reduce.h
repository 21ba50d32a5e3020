// Text of reductions whose operand is made by a program.
#pragma once

#include <optional>

#include "brrr/compiler/codegen/kernel_text.h"
#include "brrr/kernels/cuda/codegen/elementwise_text.h"

namespace brrr::compiler {

// A shape as [outer, length, inner] with the middle reduced; none where reduced axes lie apart.
struct ReducedAxes {
  int64_t outer = 1, length = 1, inner = 1;
};
std::optional<ReducedAxes> reduced_axes(const Shape& shape, const Attrs& attrs);

// How one op folds elements; none for ops that no text is written for.
struct FoldText {
  std::string functor, identity;  // "functors::Add", "0.0f"
  bool divides;                   // the result is divided by the length
};
std::optional<FoldText> fold_text(const OpDef& op, ComputeType type);

struct ReductionText {
  kernels::ElementwiseText program;  // captures what is reduced
  ReducedAxes axes;
  FoldText fold;
  ComputeType type;  // of sums
  DType result;
  int64_t enough_blocks;                          // to fill the GPU
  std::vector<KernelPointer> pointers;            // of the program
  std::optional<kernels::ElementwiseText> after;  // is given the results; none: they go to memory
  std::vector<KernelPointer> after_pointers;      // of that program, or where the results go
};
KernelText reduction_text(const ReductionText& reduction);

}  // namespace brrr::compiler
