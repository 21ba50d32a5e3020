// Networks that tell classes apart: a multilayer perceptron and a convolutional network.
//   Tensor loss = cross_entropy(net(images, {.dropout_key = key}), labels);
#pragma once

#include "brrr/nn/feed_forward.h"

namespace brrr {

struct MlpConfig {
  int64_t inputs = 784;
  std::vector<int64_t> hidden = {256, 128};
  int64_t outputs = 10;
  Activation activation = Activation::relu;
  double dropout = 0;  // behind every activation

  int64_t parameter_count() const;
};

// [batch, ...] with `inputs` elements a row -> [batch, outputs]
class Mlp : public Layer {
 public:
  Mlp(const MlpConfig& config, Random& random);
  const MlpConfig& config() const { return config_; }

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  MlpConfig config_;
  Sequential net_;
};

struct CnnConfig {
  int64_t channels = 1, height = 28, width = 28;
  std::vector<int64_t> filters = {32, 64};  // of each stage: convolution, activation, pool by 2
  int64_t kernel = 3;                       // odd: images keep their size
  int64_t hidden = 128;
  int64_t outputs = 10;
  Activation activation = Activation::relu;
  double dropout = 0;  // before the two layers at the end

  int64_t parameter_count() const;
};

// [batch, channels, height, width] -> [batch, outputs]
class Cnn : public Layer {
 public:
  Cnn(const CnnConfig& config, Random& random);
  const CnnConfig& config() const { return config_; }

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  CnnConfig config_;
  Sequential net_;
};

}  // namespace brrr
