// One layer three times over: by loops over scalars, as matrices, and by autograd.
// The three must agree to 1e-12, which in f64 leaves room for the order of additions and no more.
//
//   Z = X W + b        z_ij = sum_k x_ik w_kj + b_j                       X [n, d], W [d, m], b [m]
//   A = tanh(Z)        a_ij = tanh(z_ij)
//   L = sum (A - Y)^2 / (2 n)
//
//   dA = (A - Y) / n                         dL/da_ij = (a_ij - y_ij) / n
//   dZ = dA * (1 - A^2)                      dL/dz_ij = dL/da_ij (1 - a_ij^2)  (element by element)
//   dW = X^T dZ                              dL/dw_kj = sum_i x_ik dL/dz_ij
//   db = sum of the rows of dZ               dL/db_j  = sum_i dL/dz_ij
//   dX = dZ W^T                              dL/dx_ik = sum_j dL/dz_ij w_kj
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "brrr/brrr.h"
#include "brrr/report/table.h"

using namespace brrr;

namespace {

constexpr int64_t n = 6, d = 5, m = 4;  // rows, inputs, outputs

struct HandLayer {
  Tensor X, W, b, Y;
};
struct Result {
  double loss;
  std::vector<double> dW, db, dX;
};

Result by_scalars(const HandLayer& layer) {
  const auto x = layer.X.to_vector<double>(), w = layer.W.to_vector<double>();
  const auto b = layer.b.to_vector<double>(), y = layer.Y.to_vector<double>();
  const auto at = [](int64_t row, int64_t col, int64_t cols) {
    return static_cast<size_t>(row * cols + col);
  };
  Result r{0, std::vector<double>(d * m), std::vector<double>(m), std::vector<double>(n * d)};
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      double z = b[static_cast<size_t>(j)];
      for (int64_t k = 0; k < d; ++k) z += x[at(i, k, d)] * w[at(k, j, m)];  // z_ij
      const double a = std::tanh(z), error = a - y[at(i, j, m)];
      r.loss += error * error / (2 * n);
      const double dz = error / n * (1 - a * a);  // dL/dz_ij
      r.db[static_cast<size_t>(j)] += dz;
      for (int64_t k = 0; k < d; ++k) {
        r.dW[at(k, j, m)] += x[at(i, k, d)] * dz;
        r.dX[at(i, k, d)] += dz * w[at(k, j, m)];
      }
    }
  }
  return r;
}

Result by_matrices(const HandLayer& layer) {
  const auto& [X, W, b, Y] = layer;
  const Tensor A = tanh(matmul(X, W) + b);
  const Tensor loss = sum(square(A - Y)) / (2 * n);
  const Tensor dZ = (A - Y) / n * (1 - square(A));
  return {loss.item<double>(), matmul(transpose(X), dZ).to_vector<double>(),
          sum(dZ, {0}).to_vector<double>(), matmul(dZ, transpose(W)).to_vector<double>()};
}

Result by_autograd(const HandLayer& layer) {
  const Tensor X = layer.X.detach(), W = layer.W.detach(), b = layer.b.detach();
  X.require_grad();
  W.require_grad();
  b.require_grad();
  const Tensor loss = sum(square(tanh(matmul(X, W) + b) - layer.Y)) / (2 * n);
  loss.backward();
  return {loss.item<double>(), W.grad().to_vector<double>(), b.grad().to_vector<double>(),
          X.grad().to_vector<double>()};
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
  }
  return largest;
}

}  // namespace

int main() {
  constexpr double kTolerance = 1e-12;
  const TensorOptions kDouble{.dtype = DType::f64};
  Random random(1);
  RandomStream& data = random.stream("data");
  const HandLayer layer{.X = normal({n, d}, data, {}, kDouble),
                        .W = normal({d, m}, data, {.std = 1 / std::sqrt(d)}, kDouble),
                        .b = normal({m}, data, {.std = 0.1}, kDouble),
                        .Y = uniform({n, m}, data, {-1, 1}, kDouble)};
  const Result scalars = by_scalars(layer), matrices = by_matrices(layer),
               autograd = by_autograd(layer);

  report::Table table({"", "by scalars", "as matrices", "by autograd", "largest difference"},
                      "One layer of tanh(X W + b) under a squared error, three ways");
  double worst = 0;
  const auto compare = [&](std::string_view name, const auto& a, const auto& b, const auto& c) {
    const double difference = std::max(largest_difference(a, b), largest_difference(a, c));
    worst = std::max(worst, difference);
    const auto text = [](double value) { return fmt::format("{:.15f}", value); };
    table.row(name, text(a[0]), text(b[0]), text(c[0]), fmt::format("{:.1e}", difference));
  };
  using Values = std::vector<double>;
  compare("loss", Values{scalars.loss}, Values{matrices.loss}, Values{autograd.loss});
  compare("dW[0, 0]", scalars.dW, matrices.dW, autograd.dW);
  compare("db[0]", scalars.db, matrices.db, autograd.db);
  compare("dX[0, 0]", scalars.dX, matrices.dX, autograd.dX);
  fmt::print("{}  differences are over all elements, of which the first is shown\n", table.text());
  if (worst > kTolerance) {
    fmt::print("  They do not agree to {:g}.\n", kTolerance);
    return 1;
  }
  return 0;
}
