#include "brrr/ops/rms_norm.h"

#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/ops/binary.h"
#include "brrr/ops/copy.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce.h"
#include "brrr/ops/row_tiles.h"
#include "brrr/ops/rows_cpu.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/unary.h"

namespace brrr {
namespace {

TensorTypes infer_rms_norm(const InferCall& call) {
  const Shape& x = call.shape(0);
  check(!x.empty(), "rms_norm: a scalar has no axis to normalise over");
  const int64_t size = x.back();
  check(call.shape(1) == Shape{size}, "rms_norm: weight of shape ", call.shape(1),
        " does not fit input of shape ", x, "; it must be [", size, "]");
  check(call.dtype(1) == call.dtype(0), "rms_norm: input is ", call.dtype(0), " and weight ",
        call.dtype(1), "; cast one of them");
  check(call.attrs.number("eps") >= 0, "rms_norm: eps ", call.attrs.number("eps"),
        " must not be negative");
  return infer_same(call);
}

DType wide_dtype(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }

Tensor inverse_rms(const Tensor& x, double eps) {
  return rsqrt(mean(square(x), {-1}, KeepDims::yes) + eps);
}

Tensors rms_norm_compose(const ComposeCall& call) {
  const DType wide = wide_dtype(call.input(0));
  const Tensor x = cast(call.input(0), wide), weight = cast(call.input(1), wide);
  return {cast(x * inverse_rms(x, call.attrs.number("eps")) * weight, call.input(0).dtype())};
}

// With g = dy * weight:  dx = (g - x_hat * mean(g * x_hat)) / rms     (mean over the row)
Tensors rms_norm_grad(const GradCall& call) {
  const DType wide = wide_dtype(call.input(0));
  const Tensor x = cast(call.input(0), wide), weight = cast(call.input(1), wide),
               dy = cast(call.output_grad(0), wide);
  const Tensor scale = inverse_rms(x, call.attrs.number("eps")), x_hat = x * scale;
  Tensors grads(2);
  if (call.wants(0)) {
    const Tensor g = dy * weight;
    const Tensor along = x_hat * mean(g * x_hat, {-1}, KeepDims::yes);
    grads[0] = cast((g - along) * scale, call.input(0).dtype());
  }
  if (call.wants(1)) grads[1] = reduce_like(dy * x_hat, call.input(1));
  return grads;
}

void rms_norm_cpu(const KernelCall& call) {
  const Rows x(call.input(0)), weight(call.input(1)), y(call.output(0));
  const ComputeType type = compute_type(call.output(0).dtype);
  const RowKernels kernels = find_row_kernels(type);
  const int64_t cols = x.cols();
  if (cols == 0) return;
  // weight, then a bias of 0, in the compute type
  std::vector<double> affine(static_cast<size_t>(2 * cols), 0.0);
  weight.read(0, type, affine.data());
  for_each_row(call.pool, x.rows(), cols, 1, [&](int64_t row, void* values) {
    x.read(row, type, values);
    const double mean_square = kernels.sum_of_squares(values, 0, cols) / static_cast<double>(cols);
    const double scale = 1 / std::sqrt(mean_square + call.attrs.number("eps"));
    kernels.normalize(values, 0, scale, affine.data(), affine.data() + cols, values, cols);
    y.write(row, type, values);
  });
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

}  // namespace

const OpDef rms_norm_op{.name = "rms_norm",
                        .formula = "x / sqrt(mean(x^2) + eps) * weight",
                        .kind = OpKind::reduce,
                        .flops_per_element = 4,
                        .infer = infer_rms_norm,
                        .grad = rms_norm_grad,
                        .grad_reads = {.inputs = 0b11},
                        .compose = rms_norm_compose,
                        .cpu = rms_norm_cpu,
                        .samples = rms_norm_samples};

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  const Shape size{x.rank() == 0 ? 1 : x.dim(-1)};
  return call_one(rms_norm_op, {x, weight.defined() ? weight : ones(size, {x.dtype(), x.device()})},
                  {{"eps", eps}});
}

}  // namespace brrr
