#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

// exp(x) / sum(exp(x)) along an axis, computed with the maximum subtracted.
Tensor softmax(const Tensor& x, int64_t axis = -1);

}  // namespace brrr
