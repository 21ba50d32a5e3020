#include "brrr/ops/matmul/fp8.h"

#include "brrr/kernels/cuda/gemm/matmul_operands.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

constexpr DTypeSet kWide = dtype_set(DType::f32) | dtype_set(DType::f16) | dtype_set(DType::bf16),
                   kFactors = kWide | dtype_set(DType::f8e4m3) | dtype_set(DType::f8e5m2);

void require_scale(const InferCall& call, int i) {
  check(call.shape(i).empty() && is_float(call.dtype(i)), call.op.name, ": operand ", i, " is ",
        call.dtype(i), call.shape(i), "; a scale is one float");
}

Cost touched(const CostCall& call, int64_t flops) {
  Cost cost{.flops = flops};
  for (int i = 0; i < call.call.size(); ++i)
    cost.bytes_read += storage_bytes(call.call.dtype(i), numel(call.call.shape(i)));
  for (const TensorType& type : call.outputs)
    cost.bytes_written += storage_bytes(type.dtype, numel(type.shape));
  return cost;
}

// ---- quantize

Shape turned_shape(const Shape& x, const Attrs& attrs) {
  const int64_t columns = attrs.integer("columns");
  return {columns, numel(x) / columns};
}

TensorTypes infer_quantize(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  require_scale(call, 1);
  const Shape& x = call.shape(0);
  const DType dtype = call.attrs.get<DType>("dtype");
  check(kernels::is_f8(dtype), "quantize: ", dtype, " has not 8 bits; use f8e4m3 or f8e5m2");
  check(!x.empty() && numel(x) > 0, "quantize: x of shape ", x, " must have an axis and elements");
  const int64_t columns = call.attrs.integer("columns");
  check(columns > 0 && numel(x) % columns == 0, "quantize: x of shape ", x, " has no rows of ",
        columns, " elements");
  TensorTypes types;
  if (call.attrs.flag("plain")) types.push_back({x, dtype});
  if (call.attrs.flag("turned")) types.push_back({turned_shape(x, call.attrs), dtype});
  if (call.attrs.flag("amax")) types.push_back({{}, DType::f32});
  check(!types.empty(), "quantize: one of plain, turned and amax must be asked for");
  return types;
}

// As cast(x * scale) and max(abs(x)) count it.
Cost quantize_cost(const CostCall& call) {
  const int64_t each = call.call.attrs.flag("amax") ? 3 : 1;
  return touched(call, each * numel(call.call.shape(0)));
}

Tensors quantize_compose(const ComposeCall& call) {
  const Tensor& x = call.input(0);
  const Tensor q =
      cast(cast(x, DType::f32) * cast(call.input(1), DType::f32), call.attrs.get<DType>("dtype"));
  Tensors results;
  if (call.attrs.flag("plain")) results.push_back(q);
  if (call.attrs.flag("turned")) {
    const Shape turned = turned_shape(x.shape(), call.attrs);
    results.push_back(contiguous(transpose(reshape(q, {turned[1], turned[0]}))));
  }
  if (call.attrs.flag("amax")) results.push_back(cast(max(abs(x)), DType::f32));
  return results;
}

struct Wanted {
  bool plain = true, turned = true, amax = true;
};
Sample quantize_sample(const Tensor& x, double scale, DType dtype, int64_t columns, Wanted wanted) {
  return {{x, sample_values({}, 351, scale, scale * 1.5)},
          {{"dtype", dtype},
           {"columns", columns},
           {"plain", wanted.plain},
           {"turned", wanted.turned},
           {"amax", wanted.amax}}};
}

// Whole tiles of the kernel, parts of them, sizes that are no multiples of 16, and numbers that e4m3 does not reach.
std::vector<Sample> quantize_samples() {
  const DType e4m3 = DType::f8e4m3, e5m2 = DType::f8e5m2;
  return {quantize_sample(sample_values({2, 64, 128}, 352), 3, e4m3, 128, {}),
          quantize_sample(sample_values({176, 144}, 353, -20, 20), 100, e5m2, 144, {}),
          quantize_sample(sample_values({3, 5, 7}, 354), 1000, e4m3, 7, {}),
          quantize_sample(sample_values({16, 3, 48}, 355), 0.5, e5m2, 144,
                          {.plain = false, .amax = false}),
          quantize_sample(sample_values({130, 32}, 356), 2, e4m3, 32, {.turned = false}),
          quantize_sample(sample_values({5}, 357), 2, e4m3, 5, {.turned = false, .amax = false})};
}

// ---- matmul_scaled

TensorTypes infer_scaled(const InferCall& call) {
  const Shape &a = call.shape(0), &b = call.shape(1);
  check(a.size() >= 2 && b.size() == 2 && a.back() == b[0], call.op.name, ": operands of shape ", a,
        " and ", b, " must be [..., k] and [k, n]");
  const DType first = call.dtype(0), second = call.dtype(1);
  require_dtype(call, first);
  check(first == second || (kernels::is_f8(first) && kernels::is_f8(second)), call.op.name,
        ": operands are ", first, " and ", second, "; cast one of them");
  require_scale(call, 2);
  require_scale(call, 3);
  const DType dtype = call.attrs.get<DType>("dtype");
  check(kWide.contains(dtype), call.op.name, ": stores f32, bf16 or f16, not ", dtype);
  check(call.size() < 5 || (call.shape(4) == Shape{b[1]} && is_float(call.dtype(4))), call.op.name,
        ": bias must be floats of shape [", b[1], "]");
  Shape shape = a;
  shape.back() = b[1];
  return {{shape, dtype}};
}

Cost scaled_cost(const CostCall& call) {
  const int64_t each = 2 * call.call.shape(1)[0] + (call.call.size() == 5 ? 2 : 1);
  return touched(call, numel(call.outputs[0].shape) * each);
}

Tensors scaled_compose(const ComposeCall& call) {
  const auto wide = [&](int i) { return cast(call.input(i), DType::f32); };
  Tensor product = matmul(wide(0), wide(1)) * (wide(2) * wide(3));
  if (call.inputs.size() == 5) product = product + wide(4);
  return {cast(product, call.attrs.get<DType>("dtype"))};
}

std::vector<Sample> scaled_samples() {
  const auto scale = [](uint32_t seed) { return sample_values({}, seed, 0.5, 1); };
  return {{{sample_values({48, 64}, 361, -1, 1), sample_values({64, 32}, 362, -1, 1), scale(363),
            scale(364)},
           {{"dtype", DType::bf16}}},
          {{sample_values({2, 24, 96}, 365, -1, 1), sample_values({96, 48}, 366, -1, 1), scale(367),
            scale(368), sample_values({48}, 369)},
           {{"dtype", DType::f32}}},
          {{sample_values({5, 7}, 370, -1, 1), sample_values({7, 3}, 371, -1, 1), scale(372),
            scale(373), sample_values({3}, 374)},
           {{"dtype", DType::f16}}}};
}

}  // namespace

const OpDef quantize_op{.name = "quantize",
                        .formula = "x * scale in 8 bits, its transpose, and the largest |x|",
                        .kind = OpKind::other,
                        .role = OpRole::quantize,
                        .dtypes = kWide,
                        .infer = infer_quantize,
                        .cost = quantize_cost,
                        .compose = quantize_compose,
                        .samples = quantize_samples};

const OpDef matmul_scaled_op{.name = "matmul_scaled",
                             .formula = "(a @ b) * (a_scale * b_scale) + bias",
                             .kind = OpKind::contraction,
                             .role = OpRole::matmul_epilogue,
                             .dtypes = kFactors,
                             .infer = infer_scaled,
                             .cost = scaled_cost,
                             .compose = scaled_compose,
                             .samples = scaled_samples};

}  // namespace brrr
