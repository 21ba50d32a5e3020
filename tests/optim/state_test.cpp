// States of optimizers: bf16 by chance, averages of weights, bytes as NAPKIN and the ledger count them.
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/device/ledger.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/optim/optimizer.h"
#include "brrr/optim/stochastic_round.h"
#include "brrr/optim/weight_average.h"
#include "brrr/runtime/compile.h"
#include "support/counter_values.h"

namespace brrr {
namespace {

Tensor step_number(double step) { return full({}, step, {.dtype = DType::f64}); }

// 1 + k / 1024 lies between the neighbours 1 and 1 + 1/128 of bf16: it must go up k / 8 of the time. Of
// 20000 draws the share has a standard error of 0.35 %.
TEST(RoundByChance, IsRightOnAverage) {
  for (int k : {0, 1, 3, 4, 7}) {
    for (double sign : {1.0, -1.0}) {
      const Tensor x = full({20000}, sign * (1 + k / 1024.0));
      const Tensor rounded = cast(round_by_chance(x, step_number(3), 5), DType::f64);
      EXPECT_NEAR(mean(rounded).item<double>(), sign * (1 + k / 1024.0), 2e-4) << k;
      for (double value : rounded.to_vector<double>())
        ASSERT_TRUE(std::fabs(value) == 1 || std::fabs(value) == 1 + 1 / 128.0) << value;
    }
  }
}

TEST(RoundByChance, TakesANeighbourOrStays) {
  std::vector<double> values = counter_values("x", 5000, 1.0);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] *= std::pow(2.0, static_cast<double>(i % 60) - 40);
  const Tensor x = cast(from_values(values, {5000}), DType::f32);
  const std::vector<double> exact = x.to_vector<double>(),
                            rounded = round_by_chance(x, step_number(1), 0).to_vector<double>();
  for (size_t i = 0; i < exact.size(); ++i)
    ASSERT_LT(std::fabs(rounded[i] - exact[i]), std::fabs(exact[i]) / 128) << exact[i];
  const Tensor whole = cast(cast(x, DType::bf16), DType::f32);
  EXPECT_EQ(round_by_chance(whole, step_number(1), 0).to_vector<float>(), whole.to_vector<float>());
  EXPECT_EQ(round_by_chance(zeros({3}), step_number(1), 0).to_vector<float>(),
            (std::vector<float>{0, 0, 0}));
}

TEST(RoundByChance, StepAndSiteDecide) {
  const Tensor x = full({64}, 1 + 1 / 256.0);
  const auto rounded = [&](double step, int64_t site) {
    return round_by_chance(x, step_number(step), site).to_vector<float>();
  };
  EXPECT_EQ(rounded(1, 0), rounded(1, 0));
  EXPECT_NE(rounded(1, 0), rounded(2, 0));
  EXPECT_NE(rounded(1, 0), rounded(1, 1));
}

// A second moment with weight 1/1000 falls by less than half a bit a step: rounding to nearest would hold it
// where it is. After 2000 steps without gradient it must be near its e^-2.
TEST(Bf16State, SecondMomentsDoNotStall) {
  const Tensor p = full({2000, 1}, 0.0);
  AdamW optimizer({{"p", p}}, {.state_precision = StatePrecision::bf16});
  EXPECT_EQ(optimizer.state_bytes(), Bytes(2 * 2000 * 2 + 8));
  auto step = runtime::compile([&](const Tensor& g) { optimizer.update({g}, 1e-3); });
  for (int i = 0; i < 1000; ++i) step(full({2000, 1}, 1.0));
  const double high = mean(cast(optimizer.states().back().tensor, DType::f64)).item<double>();
  EXPECT_NEAR(high, 1 - std::pow(0.999, 1000), 0.01);
  for (int i = 0; i < 1000; ++i) step(zeros({2000, 1}));
  const double low = mean(cast(optimizer.states().back().tensor, DType::f64)).item<double>();
  EXPECT_NEAR(low / high, std::pow(0.999, 1000), 0.01);
}

// Params 36, gradients 36, state 36 of f32 for the linear network of two 4 x 4 layers and a head of 4.
TEST(OptimizerState, BytesOfAdaGrad) {
  std::vector<NamedTensor> parameters{
      {"layers.0", zeros({4, 4})}, {"layers.1", zeros({4, 4})}, {"final", zeros({4, 1})}};
  const Bytes before = ledger().live(Category::optimizer);
  const AdaGrad optimizer(parameters);
  EXPECT_EQ(optimizer.state_bytes(), Bytes(36 * 4));
  EXPECT_EQ(ledger().live(Category::optimizer) - before, Bytes(36 * 4));
}

// An eager step keeps 4 bytes of gradient a parameter until zero_grad, and none behind it.
TEST(OptimizerState, ZeroGradFreesWhatBackwardLeft) {
  const Tensor w = full({9, 4}, 0.5);
  w.require_grad();
  AdaGrad optimizer({{"w", w}});
  const Bytes before = ledger().live(Category::gradient);
  sum(square(w)).backward();
  EXPECT_EQ(ledger().live(Category::gradient) - before, Bytes(36 * 4));
  optimizer.update({w.grad()}, 0.1);
  optimizer.zero_grad();
  EXPECT_EQ(ledger().live(Category::gradient), before);
  EXPECT_FALSE(w.grad().defined());
}

// Three layers of 64 x 64 and a head of 64: 12352 parameters, and with AdaGrad's state 98816 bytes.
TEST(OptimizerState, BytesOfACheckpoint) {
  std::vector<NamedTensor> parameters;
  for (int i = 0; i < 3; ++i)
    parameters.push_back({join_text("layers.", i, ".weight"), zeros({64, 64})});
  parameters.push_back({"final.weight", zeros({64, 1})});
  const AdaGrad optimizer(parameters);
  Bytes payload = optimizer.state_bytes();
  for (const NamedTensor& parameter : parameters) payload += parameter.tensor.bytes();
  EXPECT_EQ(payload, Bytes(98'816));
}

// p -= rate g / sqrt(sum g^2 + 1e-5): the first step of g = 0.001 is 0.001 / sqrt(1.1e-5).
TEST(OptimizerState, AdaGradHasItsEpsInsideTheRoot) {
  const Tensor p = full({1}, 0.0, {.dtype = DType::f64});
  AdaGrad optimizer({{"p", p}});
  optimizer.update({full({1}, 1e-3, {.dtype = DType::f64})}, 1.0);
  EXPECT_NEAR(p.item<double>(), -1e-3 / std::sqrt(1.1e-5), 1e-15);
}

TEST(OptimizerState, LivesWithTheParameters) {
  const Bytes before = ledger().live();
  const Tensor p = zeros({1000, 1000}, {.device = Device::null()});
  const AdamW optimizer({{"p", p}});
  EXPECT_EQ(optimizer.states()[1].tensor.device(), Device::null());
  EXPECT_EQ(optimizer.state_bytes(), Bytes(8'000'008));
  EXPECT_EQ(ledger().live(), before);
}

TEST(WeightAverage, FollowsItsRecurrence) {
  const Tensor p = full({2}, 1.0, {.dtype = DType::f64});
  for (bool warmup : {false, true}) {
    p.fill(1.0);
    WeightAverage average({{"p", p}}, {.decay = 0.9, .warmup = warmup});
    double expected = 1;
    for (int t = 1; t <= 200; ++t) {
      p.fill(std::sin(0.1 * t));
      const double decay = warmup ? std::min(0.9, (1.0 + t) / (10.0 + t)) : 0.9;
      expected = decay * expected + (1 - decay) * std::sin(0.1 * t);
      average.update();
      ASSERT_NEAR(average.states()[0].tensor.to_vector<double>()[0], expected, 1e-12);
    }
    average.swap();
    EXPECT_NEAR(p.to_vector<double>()[0], expected, 1e-12);
    average.swap();
    EXPECT_EQ(p.to_vector<double>()[1], std::sin(0.1 * 200));
  }
}

TEST(WeightAverage, CompiledHasTheBitsOfEager) {
  const auto averaged = [](bool compiled) {
    const Tensor p = full({5}, 1.0);
    WeightAverage average({{"p", p}});
    const auto step = [&](const Tensor& x) {
      p.copy_from(p * 0.5 + x);
      average.update();
    };
    auto program = runtime::compile(step);
    for (int t = 0; t < 10; ++t) {
      const Tensor x = full({5}, std::cos(t));
      compiled ? program(x) : step(x);
    }
    return average.states()[0].tensor.to_vector<float>();
  };
  EXPECT_EQ(averaged(true), averaged(false));
}

TEST(Clip, Values) {
  std::vector<Tensor> grads{tensor({-3, 0.5, 2})};
  clip_values(grads, 1.0);
  EXPECT_EQ(grads[0].to_vector<float>(), (std::vector<float>{-1, 0.5, 1}));
}

// Newton-Schulz brings every singular value near 1, and keeps the directions.
TEST(Muon, OrthogonalizesTallWideAndBatches) {
  for (const Shape& shape : {Shape{8, 3}, Shape{3, 8}, Shape{5, 5}}) {
    const Tensor x = from_values(counter_values("x", shape[0] * shape[1], 1.0), shape);
    const Tensor y = orthogonalize(x);
    const int64_t small = std::min(shape[0], shape[1]);
    const double squares = sum(y * y).item<double>();  // sum of squared singular values
    EXPECT_GT(squares, 0.4 * static_cast<double>(small));
    EXPECT_LT(squares, 1.6 * static_cast<double>(small));
    EXPECT_GT(sum(x * y).item<double>(), 0);
  }
  const Tensor batch = from_values(counter_values("b", 2 * 3 * 4, 1.0), {2, 3, 4});
  EXPECT_EQ(orthogonalize(batch)[1].to_vector<double>(),
            orthogonalize(contiguous(batch[1])).to_vector<double>());
}

}  // namespace
}  // namespace brrr
