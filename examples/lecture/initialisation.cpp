// Why weights start at 1 / sqrt(d_in): sums of d_in terms have a standard deviation of sqrt(d_in),
// and a network of such layers would blow up.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "brrr/brrr.h"
#include "brrr/report/claims.h"

using namespace brrr;

namespace {

constexpr int64_t kIn = 16384, kOut = 32;
constexpr int64_t kRows = 64;  // the lecture takes one; 64 x 32 outputs show the deviation to 2 %

double std_of(const Tensor& x) { return std::sqrt(var(x).item<double>()); }

bool scale(Random& random) {
  const Tensor x = normal({kRows, kIn}, random.stream("data"));
  const Tensor w = normal({kIn, kOut}, random.stream("init"));
  const Tensor plain = matmul(x, w);
  const Tensor scaled = matmul(x, w / std::sqrt(static_cast<double>(kIn)));
  report::Claims claims(fmt::format(
      "x [{}, {}] @ w [{}, {}], all standard normal: std of the outputs", kRows, kIn, kIn, kOut));
  claims.near("w: sqrt(16384), within 5 %", std_of(plain), 128, 0.05);
  claims.near("w / sqrt(d_in), within 5 %", std_of(scaled), 1, 0.05);
  fmt::print("{}\n", claims.text());
  return claims.all_hold();
}

struct Weights {
  double std, largest, beyond;  // in sigmas, and the part beyond 3 sigma
};

Weights describe_weights(const Tensor& w, double sigma) {
  const Tensor size = abs(w) / sigma;
  return {std_of(w) / sigma, max(size).item<double>(),
          mean(cast(size > 3.0, DType::f32)).item<double>()};
}

// Bounds in absolute numbers say nothing here: ±3 is ±384 sigma.
bool truncation(Random& random) {
  const double sigma = 1 / std::sqrt(static_cast<double>(kIn));
  const Shape shape{kIn, kOut};
  const auto draw = [&](const auto& bounds) {
    return describe_weights(
        truncated_normal(shape, random.stream("init"), {.std = sigma, .bounds = bounds}), sigma);
  };
  const Weights in_sigmas = draw(SigmaBounds{-3, 3}), absolute = draw(AbsoluteBounds{-3, 3});
  report::Table table({"truncated normal with std 1/128", "bounds in sigmas", "std / sigma",
                       "largest / sigma", "beyond 3"});
  const auto row = [&](std::string_view name, std::string_view bounds, const Weights& w) {
    table.row(name, bounds, fmt::format("{:.4f}", w.std), fmt::format("{:.4f}", w.largest),
              fmt::format("{:.4f} %", 100 * w.beyond));
  };
  row("AbsoluteBounds{-3, 3}, as the lecture", "±384", absolute);
  row("SigmaBounds{-3, 3}, what was meant", "±3", in_sigmas);
  fmt::print("{}\n", table.text());

  report::Claims claims("So");
  claims.near("absolute bounds of 3, in sigmas", 3 / sigma, 384, 1e-12);
  claims.holds("absolute bounds cut nothing: some weights are beyond 3 sigma",
               fmt::format("{:.2f} sigma", absolute.largest), absolute.largest > 3);
  claims.near("  and as many as in a plain normal, within 20 %", absolute.beyond,
              std::erfc(3 / std::sqrt(2.0)), 0.2);
  claims.holds("bounds of 3 sigma hold", fmt::format("{:.4f} sigma", in_sigmas.largest),
               in_sigmas.largest <= 3 * (1 + 1e-6));
  // Cutting at c leaves the variance 1 - 2 c phi(c) / (2 Phi(c) - 1).
  const double density = std::exp(-4.5) / std::sqrt(2 * std::acos(-1.0));
  const double kept = std::sqrt(1 - 6 * density / std::erf(3 / std::sqrt(2.0)));
  claims.near("  and cost a little deviation, within 1 %", in_sigmas.std, kept, 0.01);
  fmt::print("{}\n", claims.text());
  return claims.all_hold();
}

// One seed for a program, a named stream for each use: what one draws does not move the others.
bool seeds() {
  Random first(7), second(7);
  first.stream("dropout").next();
  const Tensor a = normal({4}, first.stream("init")), b = normal({4}, second.stream("init"));
  const Tensor c = normal({4}, second.stream("data"));
  report::Claims claims("Seeds");
  claims.holds("same seed, same stream: same numbers", "", max(abs(a - b)).item<double>() == 0);
  claims.holds("same seed, another stream: others", "", max(abs(a - c)).item<double>() > 0);
  fmt::print("{}", claims.text());
  return claims.all_hold();
}

}  // namespace

int main() {
  Random random(0);
  const bool good[] = {scale(random), truncation(random), seeds()};
  return std::ranges::count(good, false) == 0 ? 0 : 1;
}
