#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

// x / sqrt(mean(x^2) + eps) * weight over the last axis; weight is [size of it], undefined: 1.
Tensor rms_norm(const Tensor& x, const Tensor& weight = {}, double eps = 1e-5);

}  // namespace brrr
