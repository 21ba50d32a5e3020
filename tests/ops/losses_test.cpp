// What the sweep and the fixtures do not say about losses: refusals, dtypes, and that they belong
// together.
#include "brrr/ops/loss/losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/brrr.h"
#include "brrr/ops/norm/log_softmax.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Mse, RefusesToBroadcast) {
  const std::string message = error_of([] { mse(zeros({3}), zeros({3, 1})); });
  EXPECT_THAT(message, HasSubstr("mse: prediction [3] and target [3, 1]"));
  EXPECT_THAT(message, HasSubstr("reshape"));
}

TEST(Mse, RefusesTwoDtypesAndIntegers) {
  const Tensor half = zeros({2}, {.dtype = DType::bf16}), whole = zeros({2}, {.dtype = DType::i64});
  EXPECT_THAT(error_of([&] { mse(half, zeros({2})); }), HasSubstr("cast one of them"));
  EXPECT_THAT(error_of([&] { mse(whole, whole); }), HasSubstr("mse: does not take i64"));
}

TEST(Mse, OfLowPrecisionIsF32) {
  // 257 squares of 1/16 add up beyond what bf16 can count
  const Tensor x = full({257}, 0.25, {.dtype = DType::bf16});
  const Tensor loss = mse(x, zeros_like(x));
  EXPECT_EQ(loss.dtype(), DType::f32);
  EXPECT_EQ(loss.item<float>(), 0.0625f);
}

TEST(Nll, OfLogSoftmaxIsCrossEntropy) {
  const Tensor logits = tensor({{1, 2, -1}, {0, 30, -30}, {5, 5, 5}}, DType::f64);
  const Tensor targets = cast(tensor({2, 0, 1}), DType::i64);
  EXPECT_NEAR(nll(log_softmax(logits), targets).item<double>(),
              cross_entropy(logits, targets).item<double>(), 1e-14);
}

TEST(Nll, RefusesTargetsThatNameNoClass) {
  const Tensor x = zeros({2, 3});
  for (double target : {-1.0, 3.0}) {
    const Tensor targets = cast(tensor({0, target}), DType::i64);
    EXPECT_THAT(error_of([&] { nll(x, targets); }),
                StartsWith(target < 0 ? "nll: target -1 at position [1]"
                                      : "nll: target 3 at position [1]"));
  }
}

TEST(Nll, RefusesShapesThatDoNotBelongTogether) {
  const Tensor targets = zeros({2}, {.dtype = DType::i64});
  EXPECT_THAT(error_of([&] { nll(zeros({2}), targets); }), HasSubstr("one axis more"));
  EXPECT_THAT(error_of([&] { nll(zeros({2, 3}), zeros({2})); }), HasSubstr("must be integers"));
  EXPECT_NE(error_of([&] { nll(zeros({3, 3}), targets); }), "no error");
}

TEST(Nll, GradientFallsOnTheTargetOnly) {
  const Tensor x = zeros({2, 3});
  x.require_grad();
  nll(x, cast(tensor({2, 0}), DType::i64)).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0, 0, -0.5f, -0.5f, 0, 0}));
}

}  // namespace
}  // namespace brrr
