#include "brrr/nn/feed_forward.h"

#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"

namespace brrr {

Tensor activate(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::relu: return relu(x);
    case Activation::gelu: return gelu(x);
    case Activation::gelu_tanh: return gelu_tanh(x);
    case Activation::silu: return silu(x);
    case Activation::tanh: return tanh(x);
  }
  fail("activate: an unknown activation");
}

int64_t gated_hidden(int64_t width, int64_t multiple) {
  return (8 * width / 3 + multiple - 1) / multiple * multiple;
}

SwiGlu::SwiGlu(int64_t width, int64_t hidden, Random& random, const FeedForwardOptions& options)
    : gate_(width, hidden, random, {.bias = options.bias, .init = options.init}),
      up_(width, hidden, random, {.bias = options.bias, .init = options.init}),
      down_(hidden, width, random, {.bias = options.bias, .init = options.out_init}),
      activation_(options.gate) {
  add_module("gate_proj", gate_);
  add_module("up_proj", up_);
  add_module("down_proj", down_);
}
Tensor SwiGlu::forward(const Tensor& x, const ForwardInputs&) const {
  return down_(activate(gate_(x), activation_) * up_(x));
}

GeluFeedForward::GeluFeedForward(int64_t width, int64_t hidden, Random& random,
                                 const FeedForwardOptions& options)
    : c_fc_(width, hidden, random, {.bias = options.bias, .init = options.init}),
      c_proj_(hidden, width, random, {.bias = options.bias, .init = options.out_init}) {
  add_module("c_fc", c_fc_);
  add_module("c_proj", c_proj_);
}
Tensor GeluFeedForward::forward(const Tensor& x, const ForwardInputs&) const {
  return c_proj_(gelu_tanh(c_fc_(x)));
}

}  // namespace brrr
