#include "brrr/ops/matmul/matmul.h"

#include <algorithm>

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/gemm/matmul_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

Shape batch_of(const Shape& shape) {
  Shape batch = shape;
  batch.resize(shape.size() - 2);
  return batch;
}

bool is_f8(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8e5m2; }

// The dtype of a product. Sums are f32 (f64 for f64) whatever the factors are; an attribute `dtype`
// stores them in another float type than that of the factors, and then the two 8-bit types mix.
DType product_dtype(const InferCall& call) {
  const DType a = call.dtype(0), b = call.dtype(1);
  const bool named = call.attrs.has("dtype");
  check(a == b || (named && is_f8(a) && is_f8(b)), call.op.name, ": operands are ", a, " and ", b,
        "; cast one of them");
  require_dtype(call, a);
  if (!named) return a;
  const DType result = call.attrs.get<DType>("dtype");
  check(is_float(a) && is_float(result) && compute_type(a) == compute_type(result), call.op.name,
        ": cannot store the product of ", a, " operands in ", result,
        "; name a float dtype that is computed in the same type, or cast the result");
  return result;
}

TensorTypes infer_matmul(const InferCall& call) {
  const Shape &a = call.shape(0), &b = call.shape(1);
  check(a.size() >= 2 && b.size() >= 2, "matmul: operands of shape ", a, " and ", b,
        " must have at least two axes");
  const int64_t k = a[a.size() - 1];
  check(k == b[b.size() - 2], "matmul: inner sizes differ: ", a, " @ ", b,
        "; transpose one of them?");
  const DType dtype = product_dtype(call);
  Shape shape = broadcast_shapes(batch_of(a), batch_of(b), "matmul");
  shape.push_back(a[a.size() - 2]);
  shape.push_back(b[b.size() - 1]);
  return {{shape, dtype}};
}

Cost matmul_cost(const CostCall& call) {
  const Shape &a = call.call.shape(0), &b = call.call.shape(1);
  const TensorType& output = call.outputs[0];
  return {.flops = 2 * numel(output.shape) * a[a.size() - 1],
          .bytes_read = storage_bytes(call.call.dtype(0), numel(a)) +
                        storage_bytes(call.call.dtype(1), numel(b)),
          .bytes_written = storage_bytes(output.dtype, numel(output.shape))};
}

Tensors matmul_grad(const GradCall& call) {  // dA = dC B^T, dB = A^T dC
  const Tensor &a = call.input(0), &b = call.input(1);
  const Tensor dc = cast(call.output_grad(0), a.dtype());
  Tensors grads(2);
  if (call.wants(0)) grads[0] = reduce_like(matmul(dc, transpose(b)), a);
  if (call.wants(1)) grads[1] = reduce_like(matmul(transpose(a), dc), b);
  return grads;
}

Tensors matmul_reference(const ComposeCall& call) {
  const Tensor &a = call.input(0), &b = call.input(1);
  const Shape batch = broadcast_shapes(batch_of(a.shape()), batch_of(b.shape()), "matmul");
  const int64_t m = a.dim(-2), k = a.dim(-1), n = b.dim(-1);
  Shape shape = batch, shape_a = batch, shape_b = batch;
  for (int64_t size : {m, n}) shape.push_back(size);
  for (int64_t size : {m, k}) shape_a.push_back(size);
  for (int64_t size : {k, n}) shape_b.push_back(size);
  const std::vector<double> x =
      make_view(a, expand_layout(a.layout(), shape_a)).to_vector<double>();
  const std::vector<double> y =
      make_view(b, expand_layout(b.layout(), shape_b)).to_vector<double>();
  Tensor c = empty(shape, call.attrs.has("dtype") ? call.attrs.get<DType>("dtype") : a.dtype());
  for (int64_t i = 0; i < c.numel(); ++i) {
    const int64_t col = i % n, row = i / n % m, matrix = i / (n * m);
    double total = 0;
    for (int64_t l = 0; l < k; ++l) {
      total += x[static_cast<size_t>((matrix * m + row) * k + l)] *
               y[static_cast<size_t>((matrix * k + l) * n + col)];
    }
    store_float(c, i, total);
  }
  return {c};
}

Tensors linear_compose(const ComposeCall& call) {
  if (!call.attrs.has("dtype")) {
    const Tensor product = matmul(call.input(0), transpose(call.input(1)));
    return {call.inputs.size() == 3 ? product + call.input(2) : product};
  }
  const DType wide = call.input(0).dtype() == DType::f64 ? DType::f64 : DType::f32;
  Tensor product = matmul(cast(call.input(0), wide), transpose(cast(call.input(1), wide)));
  if (call.inputs.size() == 3) product = product + cast(call.input(2), wide);
  return {cast(product, call.attrs.get<DType>("dtype"))};
}

TensorTypes infer_linear(const InferCall& call) {
  const Shape &x = call.shape(0), &weight = call.shape(1);
  check(weight.size() == 2, "linear: the weight has shape ", weight, "; it must be [out, in]");
  check(x.size() >= 1 && x[x.size() - 1] == weight[1], "linear: input of shape ", x,
        " does not fit a weight of shape ", weight, " [out, in]; the last size must be ",
        weight[1]);
  check(call.size() < 3 || call.shape(2) == Shape{weight[0]}, "linear: bias of shape ",
        call.size() < 3 ? Shape{} : call.shape(2), " must be [", weight[0], "]");
  const DType dtype = product_dtype(call);
  check(call.size() < 3 || call.dtype(2) == call.dtype(0) || call.dtype(2) == dtype,
        "linear: input is ", call.dtype(0), ", the result ", dtype, " and bias ",
        call.size() < 3 ? DType::f32 : call.dtype(2), "; cast it to one of them");
  Shape shape = x;
  shape[x.size() - 1] = weight[0];
  return {{shape, dtype}};
}

Cost linear_cost(const CostCall& call) {
  const int64_t results = numel(call.outputs[0].shape);
  Cost cost{.flops = results * (2 * call.call.shape(1)[1] + (call.call.size() == 3 ? 1 : 0)),
            .bytes_written = storage_bytes(call.outputs[0].dtype, results)};
  for (int i = 0; i < call.call.size(); ++i)
    cost.bytes_read += storage_bytes(call.call.dtype(i), numel(call.call.shape(i)));
  return cost;
}

// dx = dy W;  dW = dy^T x and db = sum of dy, over all rows
Tensors linear_grad(const GradCall& call) {
  const Tensor &x = call.input(0), &weight = call.input(1);
  const Tensor dy = cast(call.output_grad(0), x.dtype());
  const int64_t rows = x.dim(-1) == 0 ? numel(dy.shape()) / std::max<int64_t>(1, weight.dim(0))
                                      : x.numel() / x.dim(-1);
  Tensors grads(static_cast<int>(call.inputs.size()));
  if (call.wants(0)) grads[0] = matmul(dy, weight);
  const Tensor dy_rows = reshape(dy, {rows, weight.dim(0)});
  if (call.wants(1)) grads[1] = matmul(transpose(dy_rows), reshape(x, {rows, weight.dim(1)}));
  if (grads.size() == 3 && call.wants(2)) grads[2] = cast(sum(dy_rows, {0}), call.input(2).dtype());
  return grads;
}

std::vector<Sample> matmul_samples() {
  const auto sample = [](const Shape& a, const Shape& b) -> Sample {
    return {{sample_values(a, 90, -1, 1), sample_values(b, 91, -1, 1)}, {}};
  };
  return {sample({1, 1}, {1, 1}),         sample({3, 4}, {4, 5}),
          sample({2, 3, 4}, {2, 4, 2}),   sample({2, 1, 3, 4}, {5, 4, 2}),
          sample({2, 3, 4}, {4, 5}),      sample({0, 4}, {4, 3}),
          sample({3, 0}, {0, 2}),         sample({150, 40}, {40, 300}),
          sample({70, 3, 5}, {70, 5, 2}), sample({300, 200}, {200, 200})};
}

std::vector<Sample> linear_samples() {
  return {{{sample_values({2, 3, 4}, 92), sample_values({5, 4}, 93), sample_values({5}, 94)}, {}},
          {{sample_values({4}, 95), sample_values({3, 4}, 96)}, {}},
          {{sample_values({0, 4}, 97), sample_values({3, 4}, 98), sample_values({3}, 99)}, {}},
          {{sample_values({2, 0}, 97), sample_values({3, 0}, 98), sample_values({3}, 99)}, {}},
          {{sample_values({2, 90, 500}, 97, -1, 1), sample_values({130, 500}, 98, -1, 1),
            sample_values({130}, 99)},
           {}}};
}

constexpr PrecisionRule kProduct{
    .take = Take::low,
    .factors = 0b11,
    .stores_sums = true,
    .takes_fp8 = true,
    .reason =
        "tensor cores multiply low operands and add in f32; weight gradients keep the f32 sum"};

}  // namespace

const OpDef matmul_op{.name = "matmul",
                      .formula = "a @ b",
                      .kind = OpKind::contraction,
                      .role = OpRole::matmul,
                      .precision = &kProduct,
                      .dtypes = kNumbers,
                      .infer = infer_matmul,
                      .cost = matmul_cost,
                      .grad = matmul_grad,
                      .grad_reads = {.inputs = 0b11},
                      .reference = matmul_reference,
                      .cpu = kernels::matmul_cpu,
                      .workspace = kernels::matmul_workspace,
                      .streams = {.outputs = 1, .lands = true},
                      .samples = matmul_samples};

const OpDef linear_op{.name = "linear",
                      .formula = "x @ weight^T + bias",
                      .kind = OpKind::contraction,
                      .role = OpRole::linear,
                      .precision = &kProduct,
                      .dtypes = kNumbers,
                      .infer = infer_linear,
                      .cost = linear_cost,
                      .grad = linear_grad,
                      .grad_reads = {.inputs = 0b011},
                      .compose = linear_compose,
                      .cpu = kernels::linear_cpu,
                      .workspace = kernels::matmul_workspace,
                      .streams = {.outputs = 1, .lands = true},
                      .samples = linear_samples};

Tensor matmul(const Tensor& a, const Tensor& b) {
  check(a.rank() > 0 && b.rank() > 0, "matmul: a scalar is not a matrix; multiply with *");
  if (a.rank() == 1) return squeeze(matmul(unsqueeze(a, 0), b), b.rank() == 1 ? 0 : -2);
  if (b.rank() == 1) return squeeze(matmul(a, unsqueeze(b, 1)), -1);
  if (a.rank() > 2 && b.rank() == 2 && a.is_contiguous() && a.dim(-1) == b.dim(-2)) {
    // One tall product instead of a batch of small ones.
    Shape shape = a.shape(), rows = a.shape();
    rows.pop_back();
    shape.back() = b.dim(1);
    return reshape(call_one(matmul_op, {reshape(a, {numel(rows), a.dim(-1)}), b}), shape);
  }
  return call_one(matmul_op, {a, b});
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return bias.defined() ? call_one(linear_op, {x, weight, bias}) : call_one(linear_op, {x, weight});
}

}  // namespace brrr
