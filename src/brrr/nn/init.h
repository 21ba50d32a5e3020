// What a parameter holds before training. An Init is a value, given to layers as an option:
//
//   Linear(768, 3072, random, {.init = Init::kaiming_normal()});
//   Linear(3072, 768, random, {.init = Init::scaled_residual(0.02, layers)});
//   initialize(layer.weight, Init::zeros(), random);
//
// Fans are those of PyTorch: of a weight [out, in, kernel...], fan_in = in * kernel elements and
// fan_out = out * kernel elements.
#pragma once

#include "brrr/ops/random/random.h"

namespace brrr {

class Init {
 public:
  static Init zeros() { return constant(0); }
  static Init ones() { return constant(1); }
  static Init constant(double value) { return {Kind::constant, value}; }
  static Init normal(double std = 0.02) { return {Kind::normal, std}; }
  // A normal conditioned on lying within 3 sigma: std is that of the normal before it is cut.
  static Init truncated_normal(double std = 0.02) { return {Kind::truncated_normal, std}; }
  static Init uniform(double bound) { return {Kind::uniform, bound}; }  // [-bound, bound)
  // Keeps the variance of forward and backward on average: std^2 = gain^2 * 2 / (fan_in + fan_out).
  static Init xavier_normal(double gain = 1) { return {Kind::xavier_normal, gain}; }
  static Init xavier_uniform(double gain = 1) { return {Kind::xavier_uniform, gain}; }
  // Keeps the variance of forward: std^2 = gain^2 / fan_in, where sqrt(2) makes up for relu.
  static Init kaiming_normal(double gain = kReluGain) { return {Kind::kaiming_normal, gain}; }
  static Init kaiming_uniform(double gain = kReluGain) { return {Kind::kaiming_uniform, gain}; }
  // What torch.nn.Linear, Conv and RNN start from: uniform in +-1 / sqrt(fan_in).
  static Init torch_default() { return kaiming_uniform(kThirdRoot); }
  // GPT-2: each of `layers` blocks adds two projections to the residual stream; scaled down by
  // sqrt(2 layers), their sum keeps its variance. A projection that starts at zeros() makes every block
  // the identity at first.
  static Init scaled_residual(double std, int64_t layers);

  // A new tensor of that shape, drawn from the stream "init".
  Tensor make(const Shape& shape, Random& random, TensorOptions options = {}) const;

 private:
  enum class Kind : uint8_t {
    constant,
    normal,
    truncated_normal,
    uniform,
    xavier_normal,
    xavier_uniform,
    kaiming_normal,
    kaiming_uniform
  };
  static constexpr double kReluGain = 1.4142135623730951;   // sqrt(2)
  static constexpr double kThirdRoot = 0.5773502691896258;  // sqrt(1 / 3)

  Init(Kind kind, double scale) : kind_(kind), scale_(scale) {}

  Kind kind_;
  double scale_;  // the value, std, bound or gain
};

// Overwrites x, which may be a parameter.
void initialize(const Tensor& x, const Init& init, Random& random);

}  // namespace brrr
