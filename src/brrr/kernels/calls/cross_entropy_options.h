// The options of cross_entropy, and how they travel as attributes to its kernels.
#pragma once

#include <optional>

#include "brrr/graph/op_def.h"

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

inline DType loss_dtype(DType logits) { return logits == DType::f64 ? DType::f64 : DType::f32; }

// Only what is not at its default becomes an attribute.
Attrs to_attrs(const CrossEntropyOptions& options);
CrossEntropyOptions options_of(const Attrs& attrs);

// How many of `columns` logits a row are classes; the rest is filling.
inline int64_t class_count(const CrossEntropyOptions& options, int64_t columns) {
  return options.classes > 0 ? options.classes : columns;
}

}  // namespace brrr
