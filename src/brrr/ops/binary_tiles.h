// Which tile functions exist for ops of two and three operands; binary_cpu.cpp has them.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr {

enum class Binary : uint8_t {
  add,
  sub,
  mul,
  div,
  pow,
  maximum,
  minimum,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  where,
  fmod,
  remainder,
  logical_and,
  logical_or,
  logical_xor
};

TileKernels find_binary_tiles(Binary function);  // for the CPU that this runs on

template <Binary kFunction>
TileKernels binary_tiles() {
  return find_binary_tiles(kFunction);
}

// The same as an expression of x0, x1, ... in CUDA C++; elementwise_names.cpp has them.
std::string binary_text(Binary function, const Attrs& attrs, ComputeType type);

template <Binary kFunction>
std::string binary_expression(const Attrs& attrs, ComputeType type) {
  return binary_text(kFunction, attrs, type);
}

}  // namespace brrr
