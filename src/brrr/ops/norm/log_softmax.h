#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

// ln softmax(x) along an axis, as (x - max) - ln sum exp(x - max): finite where softmax rounds to 0.
Tensor log_softmax(const Tensor& x, int64_t axis = -1);

}  // namespace brrr
