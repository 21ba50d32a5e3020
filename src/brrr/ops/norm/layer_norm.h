#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

// (x - mean) / sqrt(var + eps) * weight + bias over the last axis; weight and bias are [size of it].
// Left undefined, they are 1 and 0.
Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);

}  // namespace brrr
