// The gradients of layer_norm and rms_norm, all inputs in one walk over the rows. Neither has a rule
// of its own: where gradients of gradients are wanted the compositions are recorded instead. A tensor like x may
// follow dy: it is added to dx, as the gradient that goes around the norm is (compiler/fuse/epilogues.h).
#include "brrr/kernels/cpu/rows/norm_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

constexpr size_t kLayerNormInputs = 5, kRmsNormInputs = 4;

// Inputs x, weight, `statistics` numbers a row, dy, and what is added to dx or nothing.
void require_operands(const InferCall& call, int statistics) {
  const Shape& x = call.shape(0);
  const int dy = 2 + statistics;
  require_dtype(call, call.dtype(0));
  check(!x.empty(), call.op.name, ": a scalar has no axis to normalise over");
  check(call.shape(1) == Shape{x.back()} && kernels::is_norm_weight(call.dtype(1), call.dtype(0)),
        call.op.name, ": weight ", call.dtype(1), call.shape(1), " does not fit input ",
        call.dtype(0), x, "; it must be ", call.dtype(0), Shape{x.back()});
  check(call.shape(dy) == x && call.dtype(dy) == call.dtype(0), call.op.name, ": the input is ",
        call.dtype(0), x, " and the gradient of the result ", call.dtype(dy), call.shape(dy),
        "; they must be alike");
  if (call.size() > dy + 1)
    check(call.shape(dy + 1) == x && call.dtype(dy + 1) == call.dtype(0), call.op.name,
          ": the input is ", call.dtype(0), x, " and what is added to its gradient ",
          call.dtype(dy + 1), call.shape(dy + 1), "; they must be alike");
  const Shape rows = kernels::row_statistic_type(x, call.dtype(0)).shape;
  for (int i = 2; i < dy; ++i) {
    check(call.shape(i) == rows && is_float(call.dtype(i)), call.op.name, ": a statistic is ",
          call.dtype(i), call.shape(i), "; it must be a float for each row of ", x);
  }
}

TensorTypes infer_layer_norm_backward(const InferCall& call) {
  require_operands(call, 2);
  const TensorType weight{call.shape(1), call.dtype(1)};
  return {{call.shape(0), call.dtype(0)}, weight, weight};
}

TensorTypes infer_rms_norm_backward(const InferCall& call) {
  require_operands(call, 1);
  return {{call.shape(0), call.dtype(0)}, {call.shape(1), call.dtype(1)}};
}

Tensor with_addend(const ComposeCall& call, const Tensor& dx, size_t inputs) {
  return call.inputs.size() > inputs ? dx + call.inputs.back() : dx;
}

// dx = (g - mean(g) - x_hat * mean(g * x_hat)) / std     (means over the row, g = dy * weight)
Tensors layer_norm_backward_compose(const ComposeCall& call) {
  const DType dtype = call.input(0).dtype(), wide = kernels::wide_dtype(dtype);
  const auto operand = [&](int i) { return cast(call.input(i), wide); };
  const Tensor inverse_std = unsqueeze(operand(3), -1), dy = operand(4);
  const Tensor x_hat = (operand(0) - unsqueeze(operand(2), -1)) * inverse_std;
  const Tensor g = dy * operand(1);
  const Tensor along = x_hat * mean(g * x_hat, {-1}, KeepDims::yes);
  const Tensor dx = cast((g - mean(g, {-1}, KeepDims::yes) - along) * inverse_std, dtype);
  return {with_addend(call, dx, kLayerNormInputs), reduce_like(dy * x_hat, call.input(1)),
          reduce_like(dy, call.input(1))};
}

// dx = (g - x_hat * mean(g * x_hat)) / rms
Tensors rms_norm_backward_compose(const ComposeCall& call) {
  const DType dtype = call.input(0).dtype(), wide = kernels::wide_dtype(dtype);
  const auto operand = [&](int i) { return cast(call.input(i), wide); };
  const Tensor inverse_rms = unsqueeze(operand(2), -1), dy = operand(3);
  const Tensor x_hat = operand(0) * inverse_rms, g = dy * operand(1);
  const Tensor along = x_hat * mean(g * x_hat, {-1}, KeepDims::yes);
  return {with_addend(call, cast((g - along) * inverse_rms, dtype), kRmsNormInputs),
          reduce_like(dy * x_hat, call.input(1))};
}

// Every operand once; one addition more where something is added.
template <int64_t kFlops, size_t kInputs>
Cost backward_cost(const CostCall& call) {
  const bool adds = call.call.inputs.size() > kInputs;
  Cost cost{.flops = (kFlops + (adds ? 1 : 0)) * numel(call.outputs[0].shape)};
  for (int i = 0; i < call.call.size(); ++i)
    cost.bytes_read += storage_bytes(call.call.dtype(i), numel(call.call.shape(i)));
  for (const TensorType& type : call.outputs)
    cost.bytes_written += storage_bytes(type.dtype, numel(type.shape));
  return cost;
}

template <int kStatistics>
std::vector<Sample> backward_samples() {
  std::vector<Sample> samples;
  for (const Shape& shape :
       {Shape{1}, Shape{5}, Shape{0, 3}, Shape{4, 6}, Shape{2, 3, 33}, Shape{30, 1100}}) {
    Shape rows = shape;
    rows.pop_back();
    Sample sample{{sample_values(shape, 170), sample_values({shape.back()}, 171)}, {}};
    if (kStatistics == 2) sample.inputs.push_back(sample_values(rows, 172, -0.5, 0.5));
    sample.inputs.push_back(sample_values(rows, 173, 0.5, 1.5));
    sample.inputs.push_back(sample_values(shape, 174));
    samples.push_back(sample);
    sample.inputs.push_back(sample_values(shape, 175));
    samples.push_back(sample);
  }
  return samples;
}

constexpr PrecisionRule kLayerNormBackward{.take = Take::stored,
                                           .wide_inputs = 0b1110,
                                           .reason = "f32 inside; gradients of weights are f32"};
constexpr PrecisionRule kRmsNormBackward{.take = Take::stored,
                                         .wide_inputs = 0b110,
                                         .reason = "f32 inside; gradients of weights are f32"};

}  // namespace

const OpDef layer_norm_backward_op{
    .name = "layer_norm_backward",
    .formula =
        "g = dy weight: dx = (g - mean(g) - x_hat mean(g x_hat)) / std, sums of dy x_hat, dy",
    .kind = OpKind::reduce,
    .precision = &kLayerNormBackward,
    .infer = infer_layer_norm_backward,
    .cost = backward_cost<14, kLayerNormInputs>,
    .compose = layer_norm_backward_compose,
    .cpu = [](const KernelCall& call) { kernels::run_norm_backward(call, kernels::Norm::layer); },
    .workspace = kernels::norm_backward_workspace,
    .streams = {.inputs = 0b10001, .outputs = 1},
    .addend = kLayerNormInputs,
    .samples = backward_samples<2>};

const OpDef rms_norm_backward_op{
    .name = "rms_norm_backward",
    .formula = "g = dy weight: dx = (g - x_hat mean(g x_hat)) / rms, sum of dy x_hat",
    .kind = OpKind::reduce,
    .precision = &kRmsNormBackward,
    .infer = infer_rms_norm_backward,
    .cost = backward_cost<11, kRmsNormInputs>,
    .compose = rms_norm_backward_compose,
    .cpu = [](const KernelCall& call) { kernels::run_norm_backward(call, kernels::Norm::rms); },
    .workspace = kernels::norm_backward_workspace,
    .streams = {.inputs = 0b1001, .outputs = 1},
    .addend = kRmsNormInputs,
    .samples = backward_samples<1>};

}  // namespace brrr
