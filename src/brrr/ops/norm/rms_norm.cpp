#include "brrr/ops/norm/rms_norm.h"

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

// Outputs: the result, and 1 / rms of each row, for the gradient.
TensorTypes infer_rms_norm(const InferCall& call) {
  const Shape& x = call.shape(0);
  check(!x.empty(), "rms_norm: a scalar has no axis to normalise over");
  const int64_t size = x.back();
  check(call.shape(1) == Shape{size}, "rms_norm: weight of shape ", call.shape(1),
        " does not fit input of shape ", x, "; it must be [", size, "]");
  check(kernels::is_norm_weight(call.dtype(1), call.dtype(0)), "rms_norm: input is ", call.dtype(0),
        " and weight ", call.dtype(1), "; cast one of them");
  check(call.attrs.number("eps") >= 0, "rms_norm: eps ", call.attrs.number("eps"),
        " must not be negative");
  return {infer_same(call)[0], kernels::row_statistic_type(x, call.dtype(0))};
}

Tensors rms_norm_compose(const ComposeCall& call) {
  const DType wide = kernels::wide_dtype(call.input(0).dtype());
  const Tensor x = cast(call.input(0), wide), weight = cast(call.input(1), wide);
  const Tensor inverse_rms = rsqrt(mean(square(x), {-1}, KeepDims::yes) + call.attrs.number("eps"));
  return {cast(x * inverse_rms * weight, call.input(0).dtype()), squeeze(inverse_rms, -1)};
}

// d inverse_rms / dx = -inverse_rms^3 x / n, should anybody ask.
Tensor statistic_grad(const GradCall& call) {
  const Tensor &r = call.output(1), x = cast(call.input(0), r.dtype());
  const Tensor factor = call.output_grad(1) * (r * square(r)) / -static_cast<double>(x.dim(-1));
  return cast(unsqueeze(factor, -1) * x, call.input(0).dtype());
}

Tensors rms_norm_grad(const GradCall& call) {
  Tensors grads(2);
  if (call.output_grad(0).defined()) {
    const Tensor inputs[] = {call.input(0), call.input(1), call.output(1), call.output_grad(0)};
    grads = call_op(rms_norm_backward_op, inputs);
  }
  if (call.wants(0) && call.output_grad(1).defined()) {
    const Tensor more = statistic_grad(call);
    grads[0] = grads[0].defined() ? grads[0] + more : more;
  }
  return grads;
}

std::vector<Sample> rms_norm_samples() {
  std::vector<Sample> samples;
  for (const Shape& shape :
       {Shape{1}, Shape{5}, Shape{0, 3}, Shape{4, 6}, Shape{2, 3, 33}, Shape{30, 1100}}) {
    samples.push_back(
        {{sample_values(shape, 124), sample_values({shape.back()}, 125)}, {{"eps", 1e-5}}});
  }
  return samples;
}

constexpr PrecisionRule kRmsNorm{
    .take = Take::stored,
    .wide_inputs = 0b10,
    .reason = "f32 inside, f32 weights and statistics; the rows as they are stored"};

}  // namespace

const OpDef rms_norm_op{
    .name = "rms_norm",
    .formula = "x / sqrt(mean(x^2) + eps) * weight",
    .kind = OpKind::reduce,
    .precision = &kRmsNorm,
    .flops_per_element = 4,
    .infer = infer_rms_norm,
    .grad = rms_norm_grad,
    .grad_reads = {.inputs = 0b11, .outputs = 0b10},
    .compose = rms_norm_compose,
    .cpu = [](const KernelCall& call) { kernels::run_norm(call, kernels::Norm::rms); },
    .streams = {.inputs = 1, .outputs = 1},
    .samples = rms_norm_samples};

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  const Shape size{x.rank() == 0 ? 1 : x.dim(-1)};
  return call_one(rms_norm_op, {x, weight.defined() ? weight : ones(size, {x.dtype(), x.device()})},
                  {{"eps", eps}});
}

}  // namespace brrr
