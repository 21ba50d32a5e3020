#include "brrr/ops/matmul/epilogue.h"

#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

// ---- Types.

// Of the product itself, whose axes are those of a with the last one replaced.
TensorType product_type(const InferCall& call) {
  const Shape &a = call.shape(0), &b = call.shape(1);
  check(a.size() >= 2 && b.size() == 2, call.op.name, ": operands of shape ", a, " and ", b,
        " must be [..., k] and [k, n]");
  check(a.back() == b[0], call.op.name, ": inner sizes differ: ", a, " @ ", b);
  check(b[1] % kEpilogueAlignment == 0, call.op.name, ": ", b[1],
        " columns; the matrix library takes multiples of ", kEpilogueAlignment,
        ", other products are a matmul and what follows it");
  require_dtype(call, call.dtype(0));
  check(call.dtype(0) == call.dtype(1), call.op.name, ": operands are ", call.dtype(0), " and ",
        call.dtype(1), "; cast one of them");
  Shape shape = a;
  shape.back() = b[1];
  return {shape, call.dtype(0)};
}

void require_bias(const InferCall& call, int i, const TensorType& product, DType result) {
  check(call.shape(i) == Shape{product.shape.back()}, call.op.name, ": bias of shape ",
        call.shape(i), " must be [", product.shape.back(), "]");
  check(call.dtype(i) == product.dtype || call.dtype(i) == result, call.op.name, ": operands are ",
        product.dtype, ", the result ", result, " and bias ", call.dtype(i),
        "; cast it to one of them");
}

// An operand with as many elements as the product, and rows of the same length.
void require_rows(const InferCall& call, int i, const TensorType& product) {
  const Shape& shape = call.shape(i);
  check(!shape.empty() && shape.back() == product.shape.back() &&
            numel(shape) == numel(product.shape),
        call.op.name, ": operand ", i, " has shape ", shape, " and the product ", product.shape,
        "; their elements must lie in the same rows");
}

void require_sum_dtype(const InferCall& call, DType result, DType factor) {
  check(result == factor || result == DType::f32, call.op.name, ": cannot store a product of ",
        factor, " operands in ", result, "; use their own dtype or f32");
}

bool flag_of(const Attrs& attrs, std::string_view name) {
  return attrs.has(name) && attrs.flag(name);
}

TensorTypes infer_gelu(const InferCall& call) {
  const TensorType z = product_type(call);
  if (call.size() == 3) require_bias(call, 2, z, z.dtype);
  return flag_of(call.attrs, "keep") ? TensorTypes{z, z} : TensorTypes{z};
}

TensorTypes infer_gelu_backward(const InferCall& call) {
  const TensorType product = product_type(call);
  require_rows(call, 2, product);
  check(call.dtype(2) == product.dtype, call.op.name, ": operands are ", product.dtype,
        " and what gelu was taken of ", call.dtype(2), "; cast one of them");
  const TensorType dz{call.shape(2), product.dtype};
  if (!flag_of(call.attrs, "sums")) return {dz};
  return {dz, {{product.shape.back()}, product.dtype}};
}

TensorTypes infer_sums(const InferCall& call) {
  TensorType product = product_type(call);
  check(product.shape.size() == 2, call.op.name, ": a has shape ", call.shape(0),
        "; it must be [m, k]");
  const DType factor = product.dtype;
  if (call.attrs.has("dtype")) product.dtype = call.attrs.get<DType>("dtype");
  require_sum_dtype(call, product.dtype, factor);
  check(call.size() < 3 || (call.shape(2) == product.shape && call.dtype(2) == product.dtype),
        call.op.name, ": what is added must be ", product, " like the product");
  return {product, {{product.shape[0]}, product.dtype}};
}

TensorTypes infer_add(const InferCall& call) {
  const TensorType product = product_type(call);
  require_rows(call, 2, product);
  require_sum_dtype(call, call.dtype(2), product.dtype);
  if (call.size() == 4) require_bias(call, 3, product, call.dtype(2));
  return {{call.shape(2), call.dtype(2)}};
}

// ---- Costs: every operand once, and the FLOPs of the ops that it stands for.

Cost product_cost(const CostCall& call, int64_t flops_per_result) {
  const int64_t results = numel(call.outputs[0].shape), k = call.call.shape(1)[0];
  Cost cost{.flops = results * (2 * k + flops_per_result)};
  for (int i = 0; i < call.call.size(); ++i)
    cost.bytes_read += storage_bytes(call.call.dtype(i), numel(call.call.shape(i)));
  for (const TensorType& type : call.outputs)
    cost.bytes_written += storage_bytes(type.dtype, numel(type.shape));
  return cost;
}

Cost gelu_cost(const CostCall& call) {
  return product_cost(call, gelu_tanh_op.flops_per_element + (call.call.size() == 3 ? 1 : 0));
}
Cost gelu_backward_cost(const CostCall& call) {
  return product_cost(call, gelu_tanh_backward_op.flops_per_element +
                                static_cast<int64_t>(call.outputs.size()) - 1);
}
Cost sums_cost(const CostCall& call) {
  Cost cost = product_cost(call, call.call.size() == 3 ? 1 : 0);
  cost.flops += numel(call.call.shape(0));
  return cost;
}
Cost add_cost(const CostCall& call) { return product_cost(call, call.call.size() - 2); }

// ---- Meanings.

DType wide_dtype(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }
Tensor wide(const Tensor& x) { return cast(x, wide_dtype(x)); }
Tensor wide_product(const ComposeCall& call) {
  return matmul(wide(call.input(0)), wide(call.input(1)));
}

Tensors gelu_compose(const ComposeCall& call) {
  const DType dtype = call.input(0).dtype();
  Tensor z = wide_product(call);
  if (call.inputs.size() == 3) z = z + wide(call.input(2));
  Tensors results{cast(gelu_tanh(z), dtype)};
  if (flag_of(call.attrs, "keep")) results.push_back(cast(z, dtype));
  return results;
}

Tensors gelu_backward_compose(const ComposeCall& call) {
  const Tensor& z = call.input(2);
  const Tensor inputs[] = {wide(z), reshape(wide_product(call), z.shape())};
  const Tensor dz = call_op(gelu_tanh_backward_op, inputs)[0];
  Tensors results{cast(dz, z.dtype())};
  if (flag_of(call.attrs, "sums")) {
    const int64_t n = z.dim(-1);
    const Tensor rows = reshape(dz, {n == 0 ? 0 : dz.numel() / n, n});
    results.push_back(cast(sum(rows, {0}), z.dtype()));
  }
  return results;
}

Tensors sums_compose(const ComposeCall& call) {
  const Tensor& a = call.input(0);
  const DType dtype =
      call.attrs.has("dtype") ? call.attrs.get<DType>("dtype") : call.input(0).dtype();
  Tensor product = wide_product(call);
  if (call.inputs.size() == 3) product = product + wide(call.input(2));
  return {cast(product, dtype), cast(sum(wide(a), {1}), dtype)};
}

Tensors add_compose(const ComposeCall& call) {
  const Tensor& c = call.input(2);
  Tensor product = wide_product(call);
  if (call.inputs.size() == 4) product = product + wide(call.input(3));
  return {cast(reshape(product, c.shape()) + wide(c), c.dtype())};
}

// The library has a tanh of its own.
constexpr double kLibraryGelu = 8;

// ---- Samples: some with more rows than a tile of the library's kernels has.

std::vector<Sample> gelu_samples() {
  return {{{sample_values({2, 3, 16}, 301, -1, 1), sample_values({16, 8}, 302, -1, 1)},
           {{"keep", true}}},
          {{sample_values({5, 8}, 303, -1, 1), sample_values({8, 24}, 304, -1, 1),
            sample_values({24}, 305)},
           {{"keep", false}}},
          {{sample_values({2, 130, 64}, 306, -0.5, 0.5), sample_values({64, 136}, 307, -0.5, 0.5),
            sample_values({136}, 308)},
           {{"keep", true}}}};
}

std::vector<Sample> gelu_backward_samples() {
  return {{{sample_values({6, 16}, 311, -1, 1), sample_values({16, 8}, 312, -1, 1),
            sample_values({2, 3, 8}, 313, -3, 3)},
           {{"sums", false}}},
          {{sample_values({140, 64}, 314, -0.5, 0.5), sample_values({64, 136}, 315, -0.5, 0.5),
            sample_values({140, 136}, 316, -3, 3)},
           {{"sums", true}}}};
}

std::vector<Sample> sums_samples() {
  return {{{sample_values({128, 128}, 321, -1, 1), sample_values({128, 64}, 322, -1, 1)}, {}},
          {{sample_values({136, 128}, 323, -1, 1), sample_values({128, 64}, 324, -1, 1),
            sample_values({136, 64}, 325)},
           {}}};
}

std::vector<Sample> add_samples() {
  return {{{sample_values({2, 3, 16}, 331, -1, 1), sample_values({16, 8}, 332, -1, 1),
            sample_values({6, 8}, 333)},
           {}},
          {{sample_values({130, 64}, 334, -1, 1), sample_values({64, 136}, 335, -1, 1),
            sample_values({2, 65, 136}, 336), sample_values({136}, 337)},
           {}}};
}

}  // namespace

const OpDef matmul_gelu_op{.name = "matmul_gelu",
                           .formula = "gelu_tanh(z) and z, z = a @ b + bias",
                           .kind = OpKind::contraction,
                           .role = OpRole::matmul_epilogue,
                           .dtypes = kEpilogueDTypes,
                           .infer = infer_gelu,
                           .cost = gelu_cost,
                           .compose = gelu_compose,
                           .samples = gelu_samples,
                           .tolerance = kLibraryGelu};

const OpDef matmul_gelu_backward_op{.name = "matmul_gelu_backward",
                                    .formula = "dz = (a @ b) gelu_tanh'(z), sum of dz over rows",
                                    .kind = OpKind::contraction,
                                    .role = OpRole::matmul_epilogue,
                                    .dtypes = kEpilogueDTypes,
                                    .infer = infer_gelu_backward,
                                    .cost = gelu_backward_cost,
                                    .compose = gelu_backward_compose,
                                    .samples = gelu_backward_samples,
                                    .tolerance = kLibraryGelu};

const OpDef matmul_sums_op{.name = "matmul_sums",
                           .formula = "a @ b + c and the sums of a over k",
                           .kind = OpKind::contraction,
                           .role = OpRole::matmul_epilogue,
                           .dtypes = kEpilogueDTypes,
                           .infer = infer_sums,
                           .cost = sums_cost,
                           .compose = sums_compose,
                           .overwrites = {.input = 2, .output = 0},
                           .samples = sums_samples};

const OpDef matmul_add_op{.name = "matmul_add",
                          .formula = "a @ b + bias + c",
                          .kind = OpKind::contraction,
                          .role = OpRole::matmul_epilogue,
                          .dtypes = kEpilogueDTypes,
                          .infer = infer_add,
                          .cost = add_cost,
                          .compose = add_compose,
                          .overwrites = {.input = 2, .output = 0},
                          .samples = add_samples};

}  // namespace brrr
