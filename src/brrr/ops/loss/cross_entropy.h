#pragma once

#include "brrr/kernels/calls/cross_entropy_options.h"
#include "brrr/tensor/tensor.h"

namespace brrr {

// Mean over all positions of the loss; those of ignore_index do not count. With class weights the sum is
// divided by the sum of w[target] over the positions that count. Where all are ignored the
// loss is 0 (PyTorch's is NaN): an empty part of a batch must not spoil the sum over the parts.
// logits [..., classes], targets [...] integers in [0, classes). Low-precision logits give an f32 loss.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options = {});
// The same, one loss a position, times its weight; 0 where it is ignored.
Tensor cross_entropy_each(const Tensor& logits, const Tensor& targets,
                          const CrossEntropyOptions& options = {});

}  // namespace brrr
