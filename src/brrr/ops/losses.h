// Losses besides cross_entropy. Low-precision inputs give an f32 loss.
#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

// Mean of (prediction - target)^2 over all elements; shapes and dtypes must be the same.
Tensor mse(const Tensor& prediction, const Tensor& target);

// Mean over all positions of -log_probabilities[target].
// log_probabilities [..., classes], targets [...] integers in [0, classes).
Tensor nll(const Tensor& log_probabilities, const Tensor& targets);
// The same, one loss a position.
Tensor nll_each(const Tensor& log_probabilities, const Tensor& targets);

}  // namespace brrr
