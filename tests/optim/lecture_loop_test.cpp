// The lecture's training loop: y = x . w with w = 0, 1, ..., 15, a linear model without hidden layers, AdaGrad,
// ten steps of four rows, once with the rate 0.01 and once with 0.1.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "brrr/autodiff/grad.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "brrr/optim/optimizer.h"
#include "brrr/runtime/compile.h"
#include "support/counter_values.h"

namespace brrr {
namespace {

constexpr int64_t kInputs = 16, kRows = 4;
constexpr int kSteps = 10;
constexpr double kEps = 1e-5;  // inside the root

std::vector<double> rows_of(int step) {
  return counter_values(join_text("x", step), kRows * kInputs, 1.0);
}
double truth(const double* row) {
  double y = 0;
  for (int64_t i = 0; i < kInputs; ++i) y += row[i] * static_cast<double>(i);
  return y;
}

struct Trained {
  std::vector<double> losses, weights;
};

// By loops over numbers: g_i = 2 / B sum_b (x_b . w - y_b) x_bi;  s_i += g_i^2;  w_i -= rate g_i / sqrt(s_i + eps)
Trained by_hand(double rate) {
  Trained result{.losses = {}, .weights = std::vector<double>(kInputs, 0.0)};
  std::array<double, kInputs> squares{};
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<double> x = rows_of(step);
    std::array<double, kInputs> gradient{};
    double loss = 0;
    for (int64_t b = 0; b < kRows; ++b) {
      const double* row = &x[static_cast<size_t>(b * kInputs)];
      double error = -truth(row);
      for (size_t i = 0; i < kInputs; ++i) error += row[i] * result.weights[i];
      loss += error * error / kRows;
      for (size_t i = 0; i < kInputs; ++i) gradient[i] += 2 * error * row[i] / kRows;
    }
    for (size_t i = 0; i < kInputs; ++i) {
      squares[i] += gradient[i] * gradient[i];
      result.weights[i] -= rate * gradient[i] / std::sqrt(squares[i] + kEps);
    }
    result.losses.push_back(loss);
  }
  return result;
}

Trained by_brrr(double rate) {
  const TensorOptions f64{.dtype = DType::f64};
  const Tensor w = zeros({kInputs, 1}, f64).require_grad();
  const Tensor true_w = reshape(arange(0, kInputs, 1, f64), {kInputs, 1});
  AdaGrad optimizer({{"w", w}});
  auto step = runtime::compile([&](const Tensor& x) {
    const Tensor loss = mean(square(matmul(x, w) - matmul(x, true_w)));
    optimizer.update(grad(loss, optimizer.parameters()), rate);
    return loss.detach();
  });
  Trained result;
  for (int i = 0; i < kSteps; ++i)
    result.losses.push_back(step(from_values(rows_of(i), {kRows, kInputs})).item<double>());
  result.weights = w.to_vector<double>();
  return result;
}

TEST(LectureLoop, TenStepsAreThoseOfTheFormulaAtBothRates) {
  for (const double rate : {0.01, 0.1}) {
    const Trained expected = by_hand(rate), found = by_brrr(rate);
    for (size_t i = 0; i < expected.losses.size(); ++i)
      EXPECT_NEAR(found.losses[i], expected.losses[i], 1e-12 * expected.losses[i]) << i;
    for (size_t i = 0; i < expected.weights.size(); ++i)
      EXPECT_NEAR(found.weights[i], expected.weights[i], 1e-12) << i;
  }
}

// The lecture's own function ignored its rate; here ten times the rate is ten times the first step.
TEST(LectureLoop, TheRateCounts) {
  const Trained slow = by_brrr(0.01), fast = by_brrr(0.1);
  EXPECT_EQ(slow.losses.front(), fast.losses.front());
  EXPECT_LT(fast.losses.back(), slow.losses.back());
}

}  // namespace
}  // namespace brrr
