// Double descent where everything can be computed: regression on random features.
//   double_descent_features           some seconds
//   double_descent_features --full    more repetitions, smoother curves; the SVG of docs/from-scratch.md
//
// n noisy samples of a linear truth are fitted by p random features, f(x) = w . tanh(V x). With p < n the fit
// is least squares; with p > n infinitely many w fit every sample, and the one of least norm is taken:
//   p <= n   w = (F^T F)^-1 F^T y          p > n   w = F^T (F F^T)^-1 y             F [n, p] = tanh(X V)
// At p = n there is exactly one w that fits all samples, noise included, and it is huge: the test error peaks.
// Beyond, more features give smaller weights, and the error falls again. Gradient descent from zero finds
// the same w without being told: its steps never leave the span of the samples.
#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "brrr/brrr.h"
#include "brrr/io/atomic_file.h"
#include "brrr/report/claims.h"
#include "brrr/report/plot.h"
#include "brrr/report/svg_plot.h"
#include "brrr/report/table.h"

using namespace brrr;

namespace {

constexpr int64_t kSamples = 100, kTest = 1000, kInputs = 30;
constexpr double kNoise = 0.5;
const TensorOptions kDouble{.dtype = DType::f64};

struct Problem {
  Tensor x, y, test_x, test_y;
};
Problem draw_problem(RandomStream& random) {
  const Tensor truth = normal({kInputs}, random, {.std = 1 / std::sqrt(kInputs)}, kDouble);
  const Tensor x = normal({kSamples, kInputs}, random, {}, kDouble);
  const Tensor test_x = normal({kTest, kInputs}, random, {}, kDouble);
  return {x, matmul(x, truth) + normal({kSamples}, random, {.std = kNoise}, kDouble), test_x,
          matmul(test_x, truth)};
}

// Solves A x = b for a symmetric positive A by Cholesky, A = L L^T: twice a substitution.
Tensor solve_symmetric(const Tensor& matrix, const Tensor& right) {
  const int64_t n = matrix.dim(0);
  std::vector<double> l = matrix.to_vector<double>(), x = right.to_vector<double>();
  const auto at = [&](int64_t i, int64_t j) -> double& {
    return l[static_cast<size_t>(i * n + j)];
  };
  const auto value = [&](int64_t i) -> double& { return x[static_cast<size_t>(i)]; };
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t k = 0; k < j; ++k) at(j, j) -= at(j, k) * at(j, k);
    at(j, j) = std::sqrt(at(j, j));
    for (int64_t i = j + 1; i < n; ++i) {
      for (int64_t k = 0; k < j; ++k) at(i, j) -= at(i, k) * at(j, k);
      at(i, j) /= at(j, j);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < i; ++k) value(i) -= at(i, k) * value(k);
    value(i) /= at(i, i);
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    for (int64_t k = i + 1; k < n; ++k) value(i) -= at(k, i) * value(k);
    value(i) /= at(i, i);
  }
  return from_values(x, {n});
}

// Least squares, or of all perfect fits the one of least norm.
Tensor least_norm_fit(const Tensor& f, const Tensor& y) {
  const Tensor ft = transpose(f);
  return f.dim(1) <= f.dim(0) ? solve_symmetric(matmul(ft, f), matmul(ft, y))
                              : matmul(ft, solve_symmetric(matmul(f, ft), y));
}

// The same by gradient descent with momentum from w = 0, as one compiled step.
Tensor descend(const Tensor& f, const Tensor& y, int64_t steps) {
  const Tensor w = zeros({f.dim(1)}, kDouble);
  w.require_grad();
  Sgd optimizer({{"w", w}}, {.momentum = 0.98});
  const double rate =
      1 / sum(square(f)).item<double>();  // below 1 / the largest eigenvalue of F^T F
  auto step = compile([&](const Tensor& scaled_rate) {
    const Tensor loss = sum(square(matmul(f, w) - y));
    optimizer.update(grad(loss, optimizer.parameters()), scaled_rate);
    return loss;
  });
  for (int64_t n = 0; n < steps; ++n) step(full({}, rate, kDouble));
  return w.detach();
}

Tensor features(const Tensor& x, int64_t count, uint64_t seed) {
  Random random(seed);  // the first features stay the same when more are added
  const Tensor directions = transpose(normal({count, kInputs}, random.stream("features"),
                                             {.std = 2 / std::sqrt(kInputs)}, kDouble));
  return tanh(matmul(x, directions)) / std::sqrt(static_cast<double>(count));
}

struct Point {
  int64_t features;
  double train_error, test_error, norm;  // medians over the problems
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Point measure(int64_t count, const std::vector<Problem>& problems) {
  std::vector<double> train, test, norms;
  for (size_t i = 0; i < problems.size(); ++i) {
    const Problem& problem = problems[i];
    const Tensor f = features(problem.x, count, i), w = least_norm_fit(f, problem.y);
    train.push_back(mse(matmul(f, w), problem.y).item<double>());
    test.push_back(
        mse(matmul(features(problem.test_x, count, i), w), problem.test_y).item<double>());
    // Of the weights that tanh(V x) itself would have, without the 1 / sqrt(p) of the features.
    norms.push_back(norm(w).item<double>() / std::sqrt(static_cast<double>(count)));
  }
  return {count, median(train), median(test), median(norms)};
}

}  // namespace

int main(int argc, char** argv) {
  const bool full_size = argc > 1 && std::string_view(argv[1]) == "--full";
  Random random(1);
  std::vector<Problem> problems;
  for (int i = 0; i < (full_size ? 25 : 5); ++i)
    problems.push_back(draw_problem(random.stream("data")));

  std::vector<Point> points;
  report::Table table(
      {"features p", "p / n", "training error", "test error", "norm of weights"},
      fmt::format("{} samples, {} inputs, noise {}; medians over {} problems{}", kSamples, kInputs,
                  kNoise, problems.size(), full_size ? "" : " (--full: 25)"));
  for (int64_t count : {10,  20,  30,  40,  50,  60,  70,  80,  90,   95,  100,
                        105, 110, 120, 140, 170, 200, 300, 500, 1000, 2000}) {
    points.push_back(measure(count, problems));
    const Point& p = points.back();
    table.row(p.features, fmt::format("{:.2f}", static_cast<double>(p.features) / kSamples),
              fmt::format("{:.2e}", p.train_error), fmt::format("{:.4f}", p.test_error),
              fmt::format("{:.3f}", p.norm));
  }
  fmt::print("{}\n", table.text());

  report::SvgCurve test{"test error", {}}, weight_norm{"norm of weights", {}};
  std::vector<double> errors;
  const Point* peak = &points[0];
  for (const Point& p : points) {
    test.points.emplace_back(p.features, p.test_error);
    weight_norm.points.emplace_back(p.features, p.norm);
    errors.push_back(p.test_error);
    if (p.test_error > peak->test_error) peak = &p;
  }
  fmt::print("{}\n", report::line_plot(errors, {.height = 10,
                                                .title = "test error by features, as in the table",
                                                .log_y = true,
                                                .x_label = "features p",
                                                .x_ends = {"10", "2000"}}));
  write_file_atomically(
      "double_descent_features.svg",
      report::svg_plot({test, weight_norm}, {.title = "Random features: the peak is at p = n",
                                             .x_label = "features p",
                                             .y_label = "test error, norm of weights",
                                             .log_x = true,
                                             .log_y = true,
                                             .marks = {{kSamples, "p = n"}}}));
  fmt::print("drawn: double_descent_features.svg\n\n");

  report::Claims claims("What the curve must show, and what gradient descent finds");
  claims.equal("the peak of the test error is at p = n", peak->features, kSamples);
  claims.holds("beyond it the error falls below half of the peak",
               fmt::format("{:.3f} after {:.3f}", points.back().test_error, peak->test_error),
               points.back().test_error < peak->test_error / 2);
  for (int64_t count : {20, 500}) {
    const Tensor f = features(problems[0].x, count, 0), closed = least_norm_fit(f, problems[0].y);
    const Tensor found = descend(f, problems[0].y, 20000);
    const double distance = (norm(found - closed) / norm(closed)).item<double>();
    claims.holds(fmt::format("descent from zero is the closed form, p = {}", count),
                 fmt::format("distance {:.1e}", distance), distance < 1e-5);
  }
  fmt::print("{}", claims.text());
  return claims.all_hold() ? 0 : 1;
}
