#pragma once

#include <optional>

#include "brrr/tensor/tensor.h"

namespace brrr {

// With l = cap * tanh(logits / cap) (l = logits without a cap) and t = logsumexp(l), the loss is
//   t - (1 - label_smoothing) * l[target] - label_smoothing * mean(l) + z_loss * t^2
struct CrossEntropyOptions {
  std::optional<int64_t> ignore_index;  // positions with this target have no loss and no gradient
  double label_smoothing = 0;           // in [0, 1]: part of the target spread over all classes
  double soft_cap = 0;                  // bounds the logits smoothly to +-cap; 0: no cap
  double z_loss = 0;                    // keeps logsumexp near 0
  int64_t classes =
      0;  // logits from this column on are filling, with no part in the loss; 0: none is
  // [classes], floats: the loss of a position counts w[target] times, and its smoothed part
  // label_smoothing / classes * sum_c w[c] (t - l[c]), as in PyTorch.
  Tensor class_weights = {};
};

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
