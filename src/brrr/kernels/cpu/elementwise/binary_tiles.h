// Which tile functions exist for ops of two and three operands; binary_cpu.cpp has them.
#pragma once

#include "brrr/graph/op_def.h"
#include "brrr/kernels/scalar/binary_functors.h"

namespace brrr::kernels {

#define BRRR_ROW(name, functor, chain) name,
enum class Binary : uint8_t { BRRR_BINARY_FUNCTIONS(BRRR_ROW) };
#undef BRRR_ROW

// Whether the op is this function of its operands, whoever defined it.
inline bool computes(const OpDef& op, Binary function) {
  return op.function ==
         ScalarFunction{ScalarFunction::Family::binary, static_cast<uint8_t>(function)};
}

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

}  // namespace brrr::kernels
