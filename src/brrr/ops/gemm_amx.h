// f32 products on the matrix unit of x86 (AMX), which multiplies bf16 and adds in f32, sixteen times as
// fast as the vector units multiply f32.
//
// A float is the sum of three bf16, exactly: x = x1 + x2 + x3, each the rounding of what is left. With
// |x2| <= 2^-9 |x| and |x3| <= 2^-18 |x| the product is
//   x y = x1 y1 + (x1 y2 + x2 y1) + (x1 y3 + x2 y2 + x3 y1) + terms below 2^-25 |x y|
// so six products of bf16 stand for one of f32, with an error below that of one rounding. The small terms
// are summed first, so that the sum is rounded no more often at its full size than with f32.
// Numbers that this cannot hold (infinity, NaN, above the largest bf16) are multiplied by the vector
// kernel: the rows of A and the columns of B that have one. Below 2^-109 the last bits are lost.
#pragma once

#include <optional>

#include "brrr/ops/gemm_cpu.h"

namespace brrr {

// Nothing where the machine, or what it may use, has no AMX.
std::optional<GemmKernels<float>> amx_gemm_kernels_f32();

// Whether the product is large enough for it: a rule of the shape alone.
bool is_for_amx(int64_t m, int64_t n, int64_t k);

}  // namespace brrr
