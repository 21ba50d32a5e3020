// Convolutions and pools as layers; the ops are in ops/conv/conv.h and ops/conv/pool.h.
#pragma once

#include "brrr/nn/layers.h"
#include "brrr/ops/conv/conv.h"
#include "brrr/ops/conv/pool.h"

namespace brrr {

struct Conv1dLayerOptions {
  Conv1dOptions windows = {};
  bool bias = true;
  Init init = Init::kaiming_normal();
};
// [n, in, length] -> [n, out, windows]; weight is [out, in / groups, kernel].
class Conv1d : public Layer {
 public:
  Conv1d(int64_t in, int64_t out, int64_t kernel, Random& random,
         const Conv1dLayerOptions& options = {});
  Tensor weight, bias;

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  Conv1dOptions windows_;
};

struct Conv2dLayerOptions {
  Conv2dOptions windows = {};
  bool bias = true;
  Init init = Init::kaiming_normal();
};
// [n, in, h, w] -> [n, out, rows, cols]; weight is [out, in / groups, kernel height, kernel width].
class Conv2d : public Layer {
 public:
  Conv2d(int64_t in, int64_t out, Size2 kernel, Random& random,
         const Conv2dLayerOptions& options = {});
  Tensor weight, bias;

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  Conv2dOptions windows_;
};

class MaxPool2d : public Layer {
 public:
  explicit MaxPool2d(const Pool2dOptions& options = {}) : options_(options) {}

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  Pool2dOptions options_;
};

class AvgPool2d : public Layer {
 public:
  explicit AvgPool2d(const Pool2dOptions& options = {}) : options_(options) {}

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  Pool2dOptions options_;
};

// [n, ...] -> [n, the rest as one axis]
class Flatten : public Layer {
 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;
};

}  // namespace brrr
