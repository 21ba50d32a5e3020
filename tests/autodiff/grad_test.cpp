#include "brrr/autodiff/grad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "brrr/brrr.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor leaf(const Literal& values) {
  const Tensor x = tensor(values, DType::f64);
  x.require_grad();
  return x;
}

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }

TEST(Backward, GivesTheLecturesGradient) {
  const Tensor x = tensor({1, 2, 3}, DType::f64), w = leaf({1, 1, 1});
  const Tensor prediction = sum(x * w);
  const Tensor loss = 0.5 * square(prediction - 5.0);
  loss.backward();
  EXPECT_EQ(prediction.item<double>(), 6);
  EXPECT_EQ(loss.item<double>(), 0.5);
  EXPECT_THAT(values(w.grad()), ElementsAre(1, 2, 3));
  EXPECT_FALSE(x.grad().defined()) << "nobody asked for it";
  EXPECT_FALSE(prediction.grad().defined()) << "not a leaf, not retained";
}

TEST(Backward, AddsToTheGradientALeafHas) {
  const Tensor w = leaf({1, 2});
  sum(w * w).backward();
  sum(w * 3.0).backward();
  EXPECT_THAT(values(w.grad()), ElementsAre(2 + 3, 4 + 3));
  w.clear_grad();
  EXPECT_FALSE(w.grad().defined());
}

TEST(Backward, SumsOverAllUsesOfAValue) {
  const Tensor x = leaf({2, 3});
  const Tensor y = x * x;
  sum(y * x + y).backward();  // x^3 + x^2
  EXPECT_THAT(values(x.grad()), ElementsAre(3 * 4 + 2 * 2, 3 * 9 + 2 * 3));
}

TEST(Backward, RetainsTheGradientOfAnInnerValueOnRequest) {
  const Tensor x = leaf({2, 3});
  const Tensor y = square(x);
  y.retain_grad();
  sum(y * 5.0).backward();
  EXPECT_THAT(values(y.grad()), ElementsAre(5, 5));
  EXPECT_THAT(values(x.grad()), ElementsAre(20, 30));
}

TEST(Backward, GivesTwoLeavesTheirOwnElements) {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  sum(a + b).backward();  // the same gradient arrives at both
  EXPECT_FALSE(shares_storage(a.grad(), b.grad()));
  sum(a).backward();  // adds in place, to a's alone
  EXPECT_THAT(values(a.grad()), ElementsAre(2, 2));
  EXPECT_THAT(values(b.grad()), ElementsAre(1, 1));
}

TEST(Backward, FlowsThroughViewsToTheElementsTheyShow) {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}, DType::f64);
  x.require_grad();
  sum(slice(transpose(x), 0, {0, 3, 2}) * 2.0).backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(2, 0, 2, 2, 0, 2));
}

TEST(Backward, StopsAtDetach) {
  const Tensor x = leaf({2, 3});
  sum(x * square(x).detach()).backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(4, 9));
  EXPECT_TRUE(shares_storage(x, x.detach()));
}

TEST(Backward, RecordsNothingUnderNoGrad) {
  const Tensor x = leaf({2, 3});
  {
    NoGrad scope;
    EXPECT_FALSE(square(x).requires_grad());
  }
  EXPECT_TRUE(square(x).requires_grad());
}

TEST(Backward, TakesASeedWhereTheResultHasManyElements) {
  const Tensor x = leaf({2, 3});
  EXPECT_THAT(error_of([&] { square(x).backward(); }), HasSubstr("reduce it to one element"));
  backward(square(x), {.seed = tensor({10, 100}, DType::f64)});
  EXPECT_THAT(values(x.grad()), ElementsAre(40, 600));
  EXPECT_THAT(error_of([&] { backward(square(x), {.seed = tensor({1}, DType::f64)}); }),
              HasSubstr("must be alike"));
}

TEST(Backward, RefusesASecondWalkUnlessTheTapeIsKept) {
  const Tensor x = leaf({2, 3});
  const Tensor loss = sum(square(x));
  backward(loss, {.retain_graph = true});
  loss.backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(8, 12));
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("retain_graph"));
}

TEST(Backward, RefusesAResultWithoutHistory) {
  EXPECT_THAT(error_of([] { sum(ones({2})).backward(); }), HasSubstr("require_grad()"));
  EXPECT_THAT(error_of([] { ones({2}, {.dtype = DType::i64}).require_grad(); }),
              HasSubstr("only float tensors"));
}

TEST(Writes, ToAValueTheGradientNeedsAreFound) {
  const Tensor x = leaf({2, 3}), factor = tensor({5, 7}, DType::f64);
  const Tensor loss = sum(x * factor);
  factor.fill(0);
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("input 1 of mul"));
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("clone()"));
}

TEST(Writes, ThroughAnyViewAreFound) {
  const Tensor x = leaf({2, 3}), factor = tensor({5, 7}, DType::f64);
  const Tensor loss = sum(x * factor);
  factor[0].fill(0);
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("was written to"));
}

TEST(Writes, ToAValueTheGradientDoesNotNeedAreFine) {
  const Tensor x = leaf({2, 3}), term = tensor({5, 7}, DType::f64);
  const Tensor loss = sum(x + term);  // the gradient of a sum reads neither term
  term.fill(0);
  loss.backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(1, 1));
}

TEST(Writes, ThatWouldCutGradientsAreRefused) {
  const Tensor x = leaf({2, 3});
  EXPECT_THAT(error_of([&] { x.fill(0); }), HasSubstr("NoGrad"));
  EXPECT_THAT(error_of([&] { square(x).fill(0); }), HasSubstr("NoGrad"));
  EXPECT_THAT(error_of([&] { ones({2}, {.dtype = DType::f64}).copy_from(square(x)); }),
              HasSubstr("NoGrad"));
  EXPECT_THAT(values(x), ElementsAre(2, 3)) << "nothing was written";
  NoGrad scope;
  x.fill(1);
  EXPECT_THAT(values(x), ElementsAre(1, 1));
}

TEST(Grad, ReturnsGradientsAndLeavesTheLeavesAlone) {
  const Tensor x = leaf({2, 3}), unused = leaf({1});
  const Tensor y = square(x);
  const auto grads = grad(sum(y * 3.0), {x, y, unused});
  EXPECT_THAT(values(grads[0]), ElementsAre(12, 18));
  EXPECT_THAT(values(grads[1]), ElementsAre(3, 3));
  EXPECT_THAT(values(grads[2]), ElementsAre(0)) << "the result does not depend on it";
  EXPECT_FALSE(x.grad().defined());
}

TEST(Grad, OfGradientsGivesHigherDerivatives) {
  const Tensor x = leaf({2, 3});
  const Tensor first = grad(sum(x * x * x), {x}, {.create_graph = true})[0];  // 3 x^2
  const Tensor second = grad(sum(first), {x}, {.create_graph = true})[0];     // 6 x
  const Tensor third = grad(sum(second), {x})[0];                             // 6
  EXPECT_THAT(values(first), ElementsAre(12, 27));
  EXPECT_THAT(values(second), ElementsAre(12, 18));
  EXPECT_THAT(values(third), ElementsAre(6, 6));
}

TEST(Grad, NamesTheInputThatWantsNone) {
  const Tensor x = leaf({2});
  EXPECT_THAT(error_of([&] { grad(sum(x), {x, ones({2})}); }), HasSubstr("input 1"));
}

TEST(Tape, KeepsOnlyWhatGradientRulesRead) {
  const Tensor x = zeros({1000}, {.dtype = DType::f64});
  x.require_grad();
  const Bytes before = ledger().live();
  Tensor y = x;
  for (int i = 0; i < 10; ++i) y = y + 1.0;  // the gradient of + reads nothing
  EXPECT_EQ(ledger().live() - before, Bytes(8000)) << "one result alive, not ten";
  Tensor z = x;
  for (int i = 0; i < 10; ++i) z = square(z);  // reads its input
  EXPECT_EQ((ledger().live() - before).value() / 8000, 1 + 10) << "x is there already";
}

TEST(Tape, IsFreedAsBackwardUsesIt) {
  const Tensor x = zeros({1000}, {.dtype = DType::f64});
  x.require_grad();
  const Bytes before = ledger().live();
  Tensor y = x;
  for (int i = 0; i < 100; ++i) y = square(y);
  const Tensor loss = sum(y);
  y = {};
  loss.backward();
  EXPECT_EQ(ledger().live() - before, Bytes(8000 + 8)) << "the gradient of x, and the loss";
  EXPECT_EQ(ledger().live(Category::gradient), Bytes(8000));
}

TEST(Tape, OfAHundredThousandStepsDoesNotOverflowTheStack) {
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 100000; ++i) y = y * 1.0;
  y.backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(1));
  Tensor dropped = x;  // the same without backward
  for (int i = 0; i < 100000; ++i) dropped = dropped + 1.0;
}

TEST(Tape, BelongsToEachThreadsOwnValuesThreads) {
  std::vector<std::thread> threads;
  std::vector<double> slopes(8);
  for (size_t t = 0; t < slopes.size(); ++t) {
    threads.emplace_back([&slopes, t] {
      const Tensor x = leaf({static_cast<double>(t)});
      for (int i = 0; i < 50; ++i) {
        x.clear_grad();
        sum(square(x)).backward();
      }
      slopes[t] = x.grad().item<double>();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(slopes, ElementsAre(0, 2, 4, 6, 8, 10, 12, 14));
}

TEST(Gradient, HasTheDtypeOfItsLeaf) {
  const Tensor a = ones({3}, {.dtype = DType::bf16}), b = ones({3});
  a.require_grad();
  sum(a * b).backward();
  EXPECT_EQ(a.grad().dtype(), DType::bf16);
}

}  // namespace
}  // namespace brrr
