// The networks between attentions: a gated one (Llama) and a plain one (GPT-2).
#pragma once

#include "brrr/nn/layers.h"

namespace brrr {

enum class Activation : uint8_t { relu, gelu, gelu_tanh, silu, tanh };
Tensor activate(const Tensor& x, Activation activation);

struct FeedForwardOptions {
  bool bias = false;
  Activation gate = Activation::silu;  // of a gated one
  Init init = Init::normal(), out_init = Init::normal();
};

// Two thirds of four widths, rounded up to a multiple: with three matrices as many parameters as 4 width with two.
int64_t gated_hidden(int64_t width, int64_t multiple);

// down(silu(gate(x)) * up(x)), or with another activation.
class SwiGlu : public Layer {
 public:
  SwiGlu(int64_t width, int64_t hidden, Random& random, const FeedForwardOptions& options = {});

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  Linear gate_, up_, down_;
  Activation activation_;
};

// c_proj(gelu_tanh(c_fc(x))), by GPT-2's names.
class GeluFeedForward : public Layer {
 public:
  GeluFeedForward(int64_t width, int64_t hidden, Random& random,
                  const FeedForwardOptions& options = {});

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  Linear c_fc_, c_proj_;
};

}  // namespace brrr
