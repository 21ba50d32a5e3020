#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

// Mean over all positions of logsumexp(logits) - logits[target].
// logits [..., classes], targets [...] integers in [0, classes). Low-precision logits give an f32 loss.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets);
// The same, one loss a position.
Tensor cross_entropy_each(const Tensor& logits, const Tensor& targets);

}  // namespace brrr
