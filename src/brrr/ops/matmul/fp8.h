// 8-bit factors of products, and the products, as a GPU wants them. Nobody calls these ops: the compiler puts them in
// place of what the precision pass wrote (compiler/fp8/fp8_matmuls.h).
//
//   quantize       x and a scale []. Attributes say what it gives, in this order:
//                    plain   q = x * scale in the 8-bit `dtype`
//                    turned  the same transposed, [columns, rows]: `columns` is the size of x's last axes together
//                    amax    the largest |x|, f32[]; NaN where x has one
//   matmul_scaled  (a @ b) * (a_scale * b_scale) + bias in `dtype`, summed in f32 and rounded once; a is [..., k], its
//                  leading axes are rows, b is [k, n], the scales are [], the bias may be missing
#pragma once

#include "brrr/ops/op_list.h"
