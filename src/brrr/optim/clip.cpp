#include "brrr/optim/clip.h"

#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/reduce/reduce.h"

namespace brrr {

Tensor global_norm(const std::vector<Tensor>& grads) {
  NoGrad update_only;
  check(!grads.empty(), "global_norm: there are no gradients");
  Tensor total;
  for (const Tensor& g : grads) {
    const Tensor part = sum(square(g));
    total = total.defined() ? total + part : part;
  }
  return sqrt(total);
}

Tensor clip_global_norm(std::vector<Tensor>& grads, double max_norm) {
  NoGrad update_only;
  check(max_norm > 0, "clip_global_norm: the largest norm must be positive, not ", max_norm);
  const Tensor norm = global_norm(grads);
  const Tensor scale = minimum(max_norm / (norm + 1e-6), 1.0);
  for (Tensor& g : grads) g = g * scale;
  return norm;
}

void clip_values(std::vector<Tensor>& grads, double limit) {
  NoGrad update_only;
  check(limit > 0, "clip_values: the limit must be positive, not ", limit);
  for (Tensor& g : grads) g = clamp(g, {.low = -limit, .high = limit});
}

}  // namespace brrr
