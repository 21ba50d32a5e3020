// The layers that language models are made of. Each draws its initial values from the stream "init" of
// the given source, in the order of construction.
#pragma once

#include "brrr/nn/module.h"
#include "brrr/ops/random.h"

namespace brrr {

struct LinearOptions {
  bool bias = true;
  double std = 0.02;  // of the initial weights, normal around 0; biases start at 0
};

// y = x weight^T + bias over the last axis; weight is [out, in].
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, Random& random, const LinearOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias;
};

// Rows of a table.
class Embedding : public Module {
 public:
  Embedding(int64_t rows, int64_t dim, Random& random, double std = 0.02);
  Tensor operator()(const Tensor& ids) const;
  Tensor weight;
};

class LayerNorm : public Module {
 public:
  explicit LayerNorm(int64_t dim, double eps = 1e-5);
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias;

 private:
  double eps_;
};

}  // namespace brrr
