// Every op between two low products, forward and backward: the pass finds types that its kernels take,
// and the values are those of f32 up to the rounding of what is stored between them.
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/autodiff/grad.h"
#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/compile.h"

namespace brrr {
namespace {

constexpr int64_t kSmall = 5000;  // elements; larger samples are for threads

struct Call {
  const OpDef* op;
  std::vector<Tensor> inputs;  // floats in f32 with numbers that bf16 holds
  Attrs attrs;
};

std::vector<Call> calls_of(const OpDef& op) {
  std::vector<Call> calls;
  for (const Sample& sample : op.samples()) {
    Call call{&op, {}, sample.attrs};
    bool small = true, any_float = false;
    for (const Tensor& input : sample.inputs) {
      const bool is_main = input.dtype() == DType::f64;
      call.inputs.push_back(is_main ? cast(cast(input, DType::bf16), DType::f32) : input);
      small &= input.numel() <= kSmall;
      any_float |= is_main;
    }
    if (small && any_float) calls.push_back(std::move(call));
  }
  return calls;
}

// The same values, made by a product: stored in the low type.
Tensor through_product(const Tensor& x, const Tensor& one) {
  return reshape(matmul(reshape(x, {x.numel(), 1}), one), x.shape());
}

Tensors run(const Call& call, std::span<const Tensor> inputs, const Tensor& one) {
  Tensors operands;
  for (const Tensor& input : inputs)
    operands.push_back(input.dtype() == DType::f32 ? through_product(input, one) : input);
  Tensors results = call_op(*call.op, operands, call.attrs);
  for (Tensor& result : results) {
    if (result.dtype() == DType::f32) result = through_product(contiguous(result), one);
  }
  return results;
}

Tensors gradients(const Call& call, std::span<const Tensor> inputs, const Tensor& one) {
  Tensors leaves;
  std::vector<Tensor> wanted;
  for (const Tensor& input : inputs) {
    leaves.push_back(input.detach());
    if (!is_float(input.dtype())) continue;
    leaves[leaves.size() - 1].require_grad();
    wanted.push_back(leaves[leaves.size() - 1]);
  }
  Tensor total;
  for (const Tensor& result : run(call, leaves, one)) {
    if (result.dtype() != DType::f32 || !result.requires_grad()) continue;
    total = total.defined() ? total + sum(result) : sum(result);
  }
  Tensors grads;
  if (!total.defined()) return grads;
  for (const Tensor& g : grad(total, wanted)) grads.push_back(g);
  return grads;
}

// Both finite and near, or the same infinity, or NaN: bf16 has the range of f32.
bool is_near(double found, double expected, double scale) {
  if (!std::isfinite(expected) || !std::isfinite(found))
    return std::isnan(expected) ? std::isnan(found) : found == expected;
  return std::fabs(found - expected) <= 0.02 * (std::fabs(expected) + scale);
}

void expect_near(const Call& call, const Tensors& found, const Tensors& expected) {
  ASSERT_EQ(found.size(), expected.size()) << call.op->name;
  for (int i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].dtype(), expected[i].dtype()) << call.op->name;
    if (expected[i].dtype() != DType::f32) continue;
    const std::vector<double> a = found[i].to_vector<double>(), b = expected[i].to_vector<double>();
    double scale = 0.2;  // errors go with the largest element: sums cancel, to 0 at times
    for (double value : b) scale = std::isfinite(value) ? std::max(scale, std::fabs(value)) : scale;
    for (size_t e = 0; e < b.size(); ++e)
      ASSERT_TRUE(is_near(a[e], b[e], scale))
          << call.op->name << " {" << to_text(call.attrs) << "}, result " << i << ", element " << e
          << ": " << a[e] << " and " << b[e];
  }
}

TEST(PrecisionOfOps, EveryOpRunsBetweenLowProducts) {
  const Tensor one = ones({1, 1});
  const compiler::PipelineOptions options{.precision = {.policy = compiler::Precision::bf16_mixed}};
  int calls = 0;
  for (const OpDef* op : builtin_ops()) {
    if (!op->dtypes.contains(DType::f32) || op == &cast_op) continue;
    for (const Call& call : calls_of(*op)) {
      ++calls;
      for (const auto program : {&run, &gradients}) {
        if (program == &gradients && !op->grad && !op->compose) continue;
        const Tensors expected = program(call, call.inputs, one);
        runtime::CompiledFunction low(
            [&](std::span<const Tensor> inputs) { return program(call, inputs, one); }, options);
        const Tensors found = low.run(call.inputs);
        // A composition rounds every step to bf16, and steps like 1 - tanh(x)^2 lose what is left of it:
        // gradients of ops without a rule of their own run, and are not compared.
        if (program == &run || op->grad) expect_near(call, found, expected);
      }
    }
  }
  EXPECT_GT(calls, 300);
}

}  // namespace
}  // namespace brrr
