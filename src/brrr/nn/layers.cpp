#include "brrr/nn/layers.h"

#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/norm/layer_norm.h"
#include "brrr/ops/norm/rms_norm.h"
#include "brrr/ops/random/dropout.h"
#include "brrr/ops/view/views.h"

namespace brrr {

Linear::Linear(int64_t in, int64_t out, Random& random, const LinearOptions& options) {
  weight = add_parameter("weight", options.init.make({out, in}, random, parameter_options()));
  if (options.bias) bias = add_parameter("bias", zeros({out}, parameter_options()));
}
Tensor Linear::forward(const Tensor& x, const ForwardInputs&) const {
  return linear(x, weight, bias);
}

Embedding::Embedding(int64_t rows, int64_t dim, Random& random, const Init& init) {
  weight = add_parameter("weight", init.make({rows, dim}, random, parameter_options()));
}
Tensor Embedding::forward(const Tensor& ids, const ForwardInputs&) const {
  return embedding(weight, ids);
}
Tensor Embedding::first(int64_t count) const { return slice(weight, 0, {0, count}); }

LayerNorm::LayerNorm(int64_t dim, const LayerNormOptions& options) : eps_(options.eps) {
  weight = add_parameter("weight", ones({dim}, parameter_options()));
  if (options.bias) bias = add_parameter("bias", zeros({dim}, parameter_options()));
}
Tensor LayerNorm::forward(const Tensor& x, const ForwardInputs&) const {
  return layer_norm(x, weight, bias, eps_);
}

RmsNorm::RmsNorm(int64_t dim, double eps) : eps_(eps) {
  weight = add_parameter("weight", ones({dim}, parameter_options()));
}
Tensor RmsNorm::forward(const Tensor& x, const ForwardInputs&) const {
  return rms_norm(x, weight, eps_);
}

Dropout::Dropout(double p, int64_t site) : p_(p), site_(site) {
  check(p >= 0 && p < 1, "dropout: p = ", p, " must be at least 0 and below 1");
  check(site >= 0, "dropout: a site is a count from 0, not ", site);
}

// Sites differ in the seed: multiples of an odd number near 2^64 / golden ratio never meet, and other
// seeds of Philox have nothing in common. So the step alone is the draw.
Tensor Dropout::forward(const Tensor& x, const ForwardInputs& inputs) const {
  if (p_ == 0 || !inputs.dropout_key.defined()) return x;
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
  const auto offset = static_cast<int64_t>(static_cast<uint64_t>(site_) * kGolden);
  const Tensor place =
      arange(0, 3, 1, {.dtype = DType::i64, .device = inputs.dropout_key.device()});
  const Tensor is_seed = cast(equal(place, 0), DType::i64);
  return dropout(x, p_, inputs.dropout_key + is_seed * offset);
}

Tensor dropout_key(uint64_t seed, int64_t step, Device device) {
  check(step >= 0 && step <= UINT32_MAX, "dropout: step ", step, " is outside 0 .. 2^32 - 1");
  return key_tensor(
      {.seed = seed, .stream = stream_id("dropout"), .draw = static_cast<uint32_t>(step)}, device);
}

}  // namespace brrr
