#include "brrr/nn/layers.h"

#include "brrr/ops/creation.h"
#include "brrr/ops/index.h"
#include "brrr/ops/layer_norm.h"
#include "brrr/ops/matmul.h"

namespace brrr {

Linear::Linear(int64_t in, int64_t out, Random& random, const LinearOptions& options) {
  weight = add_parameter("weight", normal({out, in}, random.stream("init"), {.std = options.std}));
  if (options.bias) bias = add_parameter("bias", zeros({out}));
}
Tensor Linear::operator()(const Tensor& x) const {
  const Scope scope = enter();
  return linear(x, weight, bias);
}

Embedding::Embedding(int64_t rows, int64_t dim, Random& random, double std) {
  weight = add_parameter("weight", normal({rows, dim}, random.stream("init"), {.std = std}));
}
Tensor Embedding::operator()(const Tensor& ids) const {
  const Scope scope = enter();
  return embedding(weight, ids);
}

LayerNorm::LayerNorm(int64_t dim, double eps) : eps_(eps) {
  weight = add_parameter("weight", ones({dim}));
  bias = add_parameter("bias", zeros({dim}));
}
Tensor LayerNorm::operator()(const Tensor& x) const {
  const Scope scope = enter();
  return layer_norm(x, weight, bias, eps_);
}

}  // namespace brrr
