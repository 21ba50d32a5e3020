// Which tile functions exist for ops of one operand; unary_cpu.cpp has them.
#pragma once

#include "brrr/graph/op_def.h"
#include "brrr/kernels/scalar/unary_functors.h"

namespace brrr::kernels {

#define BRRR_ROW(name, functor, chain) name,
enum class Unary : uint8_t { BRRR_UNARY_FUNCTIONS(BRRR_ROW) };
#undef BRRR_ROW

// Whether the op is this function of its operand, whoever defined it.
inline bool computes(const OpDef& op, Unary function) {
  return op.function ==
         ScalarFunction{ScalarFunction::Family::unary, static_cast<uint8_t>(function)};
}

TileKernels find_unary_tiles(Unary function);  // for the CPU that this runs on

template <Unary kFunction>
TileKernels unary_tiles() {
  return find_unary_tiles(kFunction);
}

// The same as an expression of x0, x1, ... in CUDA C++; elementwise_names.cpp has them.
std::string unary_text(Unary function, const Attrs& attrs, ComputeType type);

template <Unary kFunction>
std::string unary_expression(const Attrs& attrs, ComputeType type) {
  return unary_text(kFunction, attrs, type);
}

}  // namespace brrr::kernels
