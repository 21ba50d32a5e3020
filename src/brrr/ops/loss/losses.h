// Losses besides cross_entropy. Low-precision inputs give an f32 loss.
#pragma once

#include <optional>

#include "brrr/tensor/tensor.h"

namespace brrr {

// Mean of (prediction - target)^2 over all elements; shapes and dtypes must be the same.
Tensor mse(const Tensor& prediction, const Tensor& target);

struct NllOptions {
  std::optional<int64_t> ignore_index =
      {};                     // positions with this target have no loss and no gradient
  Tensor class_weights = {};  // [classes], floats: of the loss of each target
};

// Mean over all positions of -log_probabilities[target]; those of ignore_index do not count. With class
// weights the weighted mean, as in PyTorch: sum w[target] loss / sum w[target]. Where nothing counts the
// loss is 0, as in cross_entropy.
// log_probabilities [..., classes], targets [...] integers in [0, classes).
Tensor nll(const Tensor& log_probabilities, const Tensor& targets, const NllOptions& options = {});
// The same, one loss a position, times its weight; 0 where it is ignored.
Tensor nll_each(const Tensor& log_probabilities, const Tensor& targets,
                const NllOptions& options = {});

}  // namespace brrr
