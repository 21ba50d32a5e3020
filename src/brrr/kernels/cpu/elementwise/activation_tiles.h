// Which tile functions dx = dy * f'(x) exist; activation_cpu.cpp has them.
#pragma once

#include "brrr/graph/op_def.h"
#include "brrr/kernels/scalar/activation_functors.h"

namespace brrr::kernels {

#define BRRR_ROW(name, functor, chain) name,
enum class ActivationGrad : uint8_t { BRRR_ACTIVATION_GRADS(BRRR_ROW) };
#undef BRRR_ROW

// Whether the op is this function of x and dy, whoever defined it.
inline bool computes(const OpDef& op, ActivationGrad function) {
  return op.function == ScalarFunction{ScalarFunction::Family::activation_backward,
                                       static_cast<uint8_t>(function)};
}

// Inputs x, dy; for the CPU that this runs on.
TileKernels find_activation_backward_tiles(ActivationGrad function);

template <ActivationGrad kFunction>
TileKernels activation_backward_tiles() {
  return find_activation_backward_tiles(kFunction);
}

// The same as an expression of x0, x1, ... in CUDA C++; elementwise_names.cpp has them.
std::string activation_backward_text(ActivationGrad function, const Attrs& attrs, ComputeType type);

template <ActivationGrad kFunction>
std::string activation_backward_expression(const Attrs& attrs, ComputeType type) {
  return activation_backward_text(kFunction, attrs, type);
}

}  // namespace brrr::kernels
