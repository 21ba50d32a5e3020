// Which tile functions exist for ops of one operand; unary_cpu.cpp has them.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr {

enum class Unary : uint8_t {
  neg,
  abs,
  sign,
  square,
  relu,
  exp,
  log,
  sqrt,
  rsqrt,
  reciprocal,
  sin,
  cos,
  tanh,
  sigmoid,
  erf,
  gelu,
  silu,
  expm1,
  log1p,
  tan,
  leaky_relu,
  softplus,
  gelu_tanh,
  floor,
  ceil,
  round,
  clamp,
  isnan,
  isinf,
  isfinite,
  logical_not,
  to_tf32
};

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

}  // namespace brrr
