// What losses over classes share: which positions count, and how much.
#pragma once

#include <optional>

#include "brrr/tensor/tensor.h"

namespace brrr {

// Bools like `targets`: the positions that count.
Tensor counted_targets(const Tensor& targets, std::optional<int64_t> ignore_index);
// Targets as i64, a class that exists in place of those that do not count.
Tensor safe_targets(const Tensor& targets, std::optional<int64_t> ignore_index);
// w[target] for every position, 0 where it does not count. Throws Error naming `op` unless there is one
// float weight a class.
Tensor target_weights(const Tensor& class_weights, const Tensor& targets,
                      std::optional<int64_t> ignore_index, const TensorType& logits,
                      std::string_view op);
// sum(losses) / sum(weights), and 0 where the weights are all 0.
Tensor weighted_mean(const Tensor& losses, const Tensor& weights);

}  // namespace brrr
