// Products of matrices.
#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

// [..., m, k] @ [..., k, n] -> [..., m, n]. Batch axes broadcast; transposed operands are not copied.
// A vector on the left is a row, on the right a column, and its axis is dropped from the result.
Tensor matmul(const Tensor& a, const Tensor& b);

// x [..., in] @ weight^T [in, out] + bias [out]; weight is [out, in]. No bias: leave it undefined.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

}  // namespace brrr
