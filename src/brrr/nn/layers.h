// The layers that models are made of. Each draws its initial values from the stream "init" of the
// given source, in the order of construction.
#pragma once

#include "brrr/nn/init.h"
#include "brrr/nn/layer.h"

namespace brrr {

struct LinearOptions {
  bool bias = true;            // starts at 0
  Init init = Init::normal();  // of the weight
};

// y = x weight^T + bias over the last axis; weight is [out, in].
class Linear : public Layer {
 public:
  Linear(int64_t in, int64_t out, Random& random, const LinearOptions& options = {});
  Tensor weight, bias;

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;
};

// Rows of a table; with ids arange(seq) it is a table of learned positions.
class Embedding : public Layer {
 public:
  Embedding(int64_t rows, int64_t dim, Random& random, const Init& init = Init::normal());
  // The first `count` rows, [count, dim]: positions 0 .. count - 1 without a lookup.
  Tensor first(int64_t count) const;
  Tensor weight;

 protected:
  Tensor forward(const Tensor& ids, const ForwardInputs& inputs) const override;
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool bias = true;
};
class LayerNorm : public Layer {
 public:
  explicit LayerNorm(int64_t dim, const LayerNormOptions& options = {});
  Tensor weight, bias;

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  double eps_;
};

class RmsNorm : public Layer {
 public:
  explicit RmsNorm(int64_t dim, double eps = 1e-5);
  Tensor weight;

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  double eps_;
};

// Drops elements where the call has a dropout key and passes x through where it has none. `site` tells
// the dropouts of a model apart: each draws numbers of its own from the key of the step.
class Dropout : public Layer {
 public:
  Dropout(double p, int64_t site);

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  double p_;
  int64_t site_;
};

// The key that a step passes as an input: step t of the stream "dropout". One key serves the whole
// model.
Tensor dropout_key(uint64_t seed, int64_t step, Device device = Device::cpu());

}  // namespace brrr
