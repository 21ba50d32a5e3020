// Moving elements between storage dtypes and the four compute types, vectorised per CPU.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

// out[i] = element `first + i * stride` of the storage at `base`, converted.
void load_elements(DType dtype, const std::byte* base, int64_t first, int64_t stride, int64_t count,
                   ComputeType type, void* out);
// The way back: rounds, saturates and wraps as tensor/element.h says.
void store_elements(ComputeType type, const void* values, DType dtype, std::byte* base,
                    int64_t first, int64_t stride, int64_t count);

}  // namespace brrr::kernels
