// dx = dy * f'(x) of the activations whose derivative takes many steps, in one pass. None has a rule
// of its own: where gradients of gradients are wanted the compositions are recorded instead.
#include <numbers>

#include "brrr/kernels/cpu/elementwise/activation_tiles.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"

namespace brrr {
namespace {

TensorTypes infer_backward(const InferCall& call) {
  check(call.shape(0) == call.shape(1) && call.dtype(0) == call.dtype(1), call.op.name,
        ": the operand is ", call.dtype(0), call.shape(0), " and the gradient ", call.dtype(1),
        call.shape(1), "; they must be alike");
  return infer_same(call);
}

// d gelu / dx = Phi(x) + x phi(x), Phi and phi the normal distribution and its density.
Tensors gelu_backward_compose(const ComposeCall& call) {
  const Tensor &x = call.input(0), &dy = call.input(1);
  const Tensor distribution = 0.5 * (1.0 + erf(x * std::numbers::sqrt2 * 0.5));
  const Tensor density =
      exp(-0.5 * square(x)) * (0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
  return {dy * (distribution + x * density)};
}

// s + x s (1 - s) (2u)', s = sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3)
Tensors gelu_tanh_backward_compose(const ComposeCall& call) {
  constexpr double kSqrt8OverPi = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  constexpr double kCubic = 0.044715;
  const Tensor &x = call.input(0), &dy = call.input(1);
  const Tensor s = sigmoid(kSqrt8OverPi * (x * (1.0 + kCubic * square(x))));
  const Tensor slope = kSqrt8OverPi * (1.0 + 3 * kCubic * square(x));
  return {dy * (s * (1.0 + x * (1.0 - s) * slope))};
}

Tensors silu_backward_compose(const ComposeCall& call) {  // s + x s (1 - s), s = sigmoid(x)
  const Tensor &x = call.input(0), &dy = call.input(1);
  const Tensor s = sigmoid(x);
  return {dy * (s * (1.0 + x * (1.0 - s)))};
}

std::vector<Sample> pairs_of_one_shape() {
  std::vector<Sample> samples;
  uint32_t seed = 160;
  for (const Shape& shape : elementwise_shapes()) {
    samples.push_back({{sample_values(shape, seed, -3, 3), sample_values(shape, seed + 1)}, {}});
    seed += 2;
  }
  return samples;
}

template <kernels::ActivationGrad kFunction>
constexpr OpDef activation_backward(OpDef op) {
  op.kind = OpKind::elementwise;
  op.infer = infer_backward;
  op.tiles = kernels::activation_backward_tiles<kFunction>;
  op.cpu = kernels::run_elementwise;
  op.expression = kernels::activation_backward_expression<kFunction>;
  op.function = {ScalarFunction::Family::activation_backward, static_cast<uint8_t>(kFunction)};
  op.samples = pairs_of_one_shape;
  return op;
}

}  // namespace

constinit const OpDef gelu_backward_op = activation_backward<kernels::ActivationGrad::gelu>(
    {.name = "gelu_backward",
     .formula = "dy (Phi(x) + x phi(x))",
     .flops_per_element = 9,
     .compose = gelu_backward_compose,
     // Two terms that cancel at x = -0.75, where gelu turns: each is right to 4 units of itself.
     .tolerance = 4});

constinit const OpDef gelu_tanh_backward_op =
    activation_backward<kernels::ActivationGrad::gelu_tanh>(
        {.name = "gelu_tanh_backward",
         .formula =
             "dy (s + x s (1 - s) (2u)'), s = sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3)",
         .flops_per_element = 14,
         .compose = gelu_tanh_backward_compose});

constinit const OpDef silu_backward_op = activation_backward<kernels::ActivationGrad::silu>(
    {.name = "silu_backward",
     .formula = "dy (s + x s (1 - s)), s = sigmoid(x)",
     .flops_per_element = 7,
     .compose = silu_backward_compose});

}  // namespace brrr
