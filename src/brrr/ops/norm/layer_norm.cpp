#include "brrr/ops/norm/layer_norm.h"

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/rows/norm_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

// Outputs: the result, and the mean and 1 / standard deviation of each row, for the gradient.
TensorTypes infer_layer_norm(const InferCall& call) {
  const Shape& x = call.shape(0);
  check(!x.empty(), "layer_norm: a scalar has no axis to normalise over");
  const int64_t size = x[x.size() - 1];
  for (int i : {1, 2}) {
    check(call.shape(i) == Shape{size}, "layer_norm: ", i == 1 ? "weight" : "bias", " of shape ",
          call.shape(i), " does not fit input of shape ", x, "; it must be [", size, "]");
    check(kernels::is_norm_weight(call.dtype(i), call.dtype(0)), "layer_norm: input is ",
          call.dtype(0), " and ", i == 1 ? "weight " : "bias ", call.dtype(i),
          "; cast one of them");
  }
  check(call.attrs.number("eps") >= 0, "layer_norm: eps ", call.attrs.number("eps"),
        " must not be negative");
  const TensorType statistic = kernels::row_statistic_type(x, call.dtype(0));
  return {infer_same(call)[0], statistic, statistic};
}

Tensors layer_norm_compose(const ComposeCall& call) {
  const DType wide = kernels::wide_dtype(call.input(0).dtype());
  const Tensor x = cast(call.input(0), wide), weight = cast(call.input(1), wide),
               bias = cast(call.input(2), wide);
  const Tensor center = mean(x, {-1}, KeepDims::yes), centered = x - center;
  const Tensor inverse_std =
      rsqrt(mean(square(centered), {-1}, KeepDims::yes) + call.attrs.number("eps"));
  return {cast(centered * inverse_std * weight + bias, call.input(0).dtype()), squeeze(center, -1),
          squeeze(inverse_std, -1)};
}

// d mean / dx = 1 / n  and  d inverse_std / dx = -inverse_std^2 x_hat / n, should anybody ask.
Tensor statistics_grad(const GradCall& call) {
  const Tensor x = cast(call.input(0), call.output(1).dtype());
  const double n = static_cast<double>(x.dim(-1));
  Tensor dx;
  if (call.output_grad(1).defined()) dx = unsqueeze(call.output_grad(1) / n, -1);
  if (call.output_grad(2).defined()) {
    const Tensor r = call.output(2), x_hat = (x - unsqueeze(call.output(1), -1)) * unsqueeze(r, -1);
    const Tensor part = unsqueeze(call.output_grad(2) * square(r) / -n, -1) * x_hat;
    dx = dx.defined() ? dx + part : part;
  }
  return cast(expand(dx, x.shape()), call.input(0).dtype());
}

Tensors layer_norm_grad(const GradCall& call) {
  Tensors grads(3);
  if (call.output_grad(0).defined()) {
    const Tensor inputs[] = {call.input(0), call.input(1), call.output(1), call.output(2),
                             call.output_grad(0)};
    grads = call_op(layer_norm_backward_op, inputs);
  }
  if (call.wants(0) && (call.output_grad(1).defined() || call.output_grad(2).defined())) {
    const Tensor more = statistics_grad(call);
    grads[0] = grads[0].defined() ? grads[0] + more : more;
  }
  return grads;
}

std::vector<Sample> layer_norm_samples() {
  std::vector<Sample> samples;
  for (const Shape& shape :
       {Shape{5}, Shape{0, 3}, Shape{4, 6}, Shape{2, 3, 33}, Shape{30, 1100}}) {
    const Shape affine{shape.back()};
    samples.push_back(
        {{sample_values(shape, 120), sample_values(affine, 121), sample_values(affine, 122)},
         {{"eps", 1e-5}}});
  }
  return samples;
}

constexpr PrecisionRule kLayerNorm{
    .take = Take::stored,
    .wide_inputs = 0b110,
    .reason = "f32 inside, f32 weights and statistics; the rows as they are stored"};

}  // namespace

const OpDef layer_norm_op{
    .name = "layer_norm",
    .formula = "(x - mean) / sqrt(var + eps) * weight + bias",
    .kind = OpKind::reduce,
    .precision = &kLayerNorm,
    .flops_per_element = 8,
    .infer = infer_layer_norm,
    .grad = layer_norm_grad,
    .grad_reads = {.inputs = 0b011, .outputs = 0b110},
    .compose = layer_norm_compose,
    .cpu = [](const KernelCall& call) { kernels::run_norm(call, kernels::Norm::layer); },
    .streams = {.inputs = 1, .outputs = 1},
    .samples = layer_norm_samples};

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const Shape size{x.rank() == 0 ? 1 : x.dim(-1)};
  const TensorOptions options{x.dtype(), x.device()};
  return call_one(layer_norm_op,
                  {x, weight.defined() ? weight : ones(size, options),
                   bias.defined() ? bias : zeros(size, options)},
                  {{"eps", eps}});
}

}  // namespace brrr
