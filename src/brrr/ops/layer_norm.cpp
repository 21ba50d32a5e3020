#include "brrr/ops/layer_norm.h"

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
#include "brrr/ops/views.h"

namespace brrr {
namespace {

TensorTypes infer_layer_norm(const InferCall& call) {
  const Shape& x = call.shape(0);
  check(!x.empty(), "layer_norm: a scalar has no axis to normalise over");
  const int64_t size = x[x.size() - 1];
  for (int i : {1, 2}) {
    check(call.shape(i) == Shape{size}, "layer_norm: ", i == 1 ? "weight" : "bias", " of shape ",
          call.shape(i), " does not fit input of shape ", x, "; it must be [", size, "]");
    check(call.dtype(i) == call.dtype(0), "layer_norm: input is ", call.dtype(0), " and ",
          i == 1 ? "weight " : "bias ", call.dtype(i), "; cast one of them");
  }
  check(call.attrs.number("eps") >= 0, "layer_norm: eps ", call.attrs.number("eps"),
        " must not be negative");
  return infer_same(call);
}

DType wide_dtype(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }

// x centred and scaled to unit variance, and 1 / its standard deviation, per row.
struct Normalized {
  Tensor x_hat, inverse_std;
};
Normalized normalize_rows(const Tensor& x, double eps) {
  const Tensor centered = x - mean(x, {-1}, KeepDims::yes);
  const Tensor inverse_std = rsqrt(mean(square(centered), {-1}, KeepDims::yes) + eps);
  return {centered * inverse_std, inverse_std};
}

Tensors layer_norm_compose(const ComposeCall& call) {
  const DType wide = wide_dtype(call.input(0));
  const Tensor x = cast(call.input(0), wide), weight = cast(call.input(1), wide),
               bias = cast(call.input(2), wide);
  const Tensor x_hat = normalize_rows(x, call.attrs.number("eps")).x_hat;
  return {cast(x_hat * weight + bias, call.input(0).dtype())};
}

// With g = dy * weight:  dx = (g - mean(g) - x_hat * mean(g * x_hat)) / std     (means over the row)
Tensors layer_norm_grad(const GradCall& call) {
  const DType wide = wide_dtype(call.input(0));
  const Tensor x = cast(call.input(0), wide), weight = cast(call.input(1), wide),
               dy = cast(call.output_grad(0), wide);
  const auto [x_hat, inverse_std] = normalize_rows(x, call.attrs.number("eps"));
  Tensors grads(3);
  if (call.wants(0)) {
    const Tensor g = dy * weight;
    const Tensor along = x_hat * mean(g * x_hat, {-1}, KeepDims::yes);
    grads[0] =
        cast((g - mean(g, {-1}, KeepDims::yes) - along) * inverse_std, call.input(0).dtype());
  }
  if (call.wants(1)) grads[1] = reduce_like(dy * x_hat, call.input(1));
  if (call.wants(2)) grads[2] = reduce_like(dy, call.input(2));
  return grads;
}

void layer_norm_cpu(const KernelCall& call) {
  const Rows x(call.input(0)), weight(call.input(1)), bias(call.input(2)), y(call.output(0));
  const ComputeType type = compute_type(call.output(0).dtype);
  const RowKernels kernels = find_row_kernels(type);
  const int64_t cols = x.cols();
  if (cols == 0) return;
  std::vector<double> affine(
      static_cast<size_t>(2 * cols));  // weight, then bias, in the compute type
  weight.read(0, type, affine.data());
  bias.read(0, type, affine.data() + cols);
  for_each_row(call.pool, x.rows(), cols, 1, [&](int64_t row, void* values) {
    x.read(row, type, values);
    const double center = kernels.sum(values, cols) / static_cast<double>(cols);
    const double variance =
        kernels.sum_of_squares(values, center, cols) / static_cast<double>(cols);
    const double scale = 1 / std::sqrt(variance + call.attrs.number("eps"));
    kernels.normalize(values, center, scale, affine.data(), affine.data() + cols, values, cols);
    y.write(row, type, values);
  });
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

}  // namespace

const OpDef layer_norm_op{.name = "layer_norm",
                          .formula = "(x - mean) / sqrt(var + eps) * weight + bias",
                          .kind = OpKind::reduce,
                          .flops_per_element = 8,
                          .infer = infer_layer_norm,
                          .grad = layer_norm_grad,
                          .grad_reads = {.inputs = 0b011},
                          .compose = layer_norm_compose,
                          .cpu = layer_norm_cpu,
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
