// Under- and overflows of programs in low precision, counted by hand beside the function that counts them.
#include "brrr/compiler/precision/range_loss.h"

#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/runtime/compile.h"

namespace brrr {
namespace {

compiler::RangeLosses losses_of(const std::function<Tensor(const Tensor&)>& function,
                                const Tensor& x, const compiler::PrecisionOptions& precision = {}) {
  auto compiled =
      runtime::compile([&](const Tensor& in) { return function(in); }, {.precision = precision});
  const Tensor inputs[] = {x};
  return compiler::count_range_losses(compiled.function().executable(inputs).graph(), inputs);
}

// 1e-8 is below half of the smallest f16 (6e-8), 1e-7 is not; 7e4 is beyond the largest (65504).
TEST(RangeLoss, CountsWhatACastLoses) {
  const Tensor x = tensor({0.0, 1e-8, -1e-8, 1e-7, 1.0, 7e4, -1e9});
  EXPECT_EQ(losses_of([](const Tensor& in) { return cast(in, DType::f16); }, x).all(),
            (compiler::RangeLoss{.stored = 7, .underflows = 2, .overflows = 2}));
  EXPECT_EQ(losses_of([](const Tensor& in) { return cast(in, DType::bf16); }, x).all(),
            (compiler::RangeLoss{.stored = 7}));
  EXPECT_EQ(losses_of([](const Tensor& in) { return in * 2.0; }, x).all(), compiler::RangeLoss{});
}

TEST(RangeLoss, CountsFormatsThatStopAtTheirLargestNumber) {
  const Tensor x = tensor({1e-3, 0.5, 448.0, 500.0});  // the smallest e4m3 is 2^-9
  EXPECT_EQ(losses_of([](const Tensor& in) { return cast(in, DType::f8e4m3); }, x).all(),
            (compiler::RangeLoss{.stored = 4, .underflows = 0, .overflows = 1}));
  EXPECT_EQ(losses_of([](const Tensor& in) { return cast(in * 0.5, DType::f8e4m3); }, x).all(),
            (compiler::RangeLoss{.stored = 4, .underflows = 1}));
}

// Both operands are f16 numbers, their product is not.
TEST(RangeLoss, CountsResultsOfOpsThatComputeInALowType) {
  const Tensor x = cast(tensor({1e-4, 300.0, 2.0}), DType::f16);
  EXPECT_EQ(losses_of([](const Tensor& in) { return in * in; }, x).all(),
            (compiler::RangeLoss{.stored = 3, .underflows = 1, .overflows = 1}));
}

TEST(RangeLoss, LossScalingSavesSmallGradients) {
  const Tensor x = tensor({{1, 2}, {3, 4}}), w = tensor({{0.5, -1}, {2, 0.25}}).require_grad();
  const auto gradient = [&](const Tensor& in) { return grad(sum(matmul(in, w)) * 1e-8, {w})[0]; };
  const compiler::RangeLosses none =
      losses_of(gradient, x,
                {.policy = compiler::Precision::f16_mixed,
                 .loss_scale = {.kind = compiler::LossScaling::none}});
  EXPECT_EQ(none.backward.underflows, 1) << "the gradient of the product, one number for all";
  EXPECT_EQ(none.forward.underflows, 0);
  EXPECT_EQ(losses_of(gradient, x, {.policy = compiler::Precision::f16_mixed}).backward.underflows,
            0);
  EXPECT_EQ(losses_of(gradient, x, {.policy = compiler::Precision::bf16_mixed}).backward.underflows,
            0);
}

}  // namespace
}  // namespace brrr
