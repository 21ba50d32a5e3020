// f32 products by bf16 tiles are as good as those by f32 vectors, for any strides and cut, and say
// infinity and NaN where those do.
#include "brrr/ops/gemm_amx.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace brrr {
namespace {

enum class Order : uint8_t {
  rows,
  columns,
  apart
};  // contiguous rows, contiguous columns, neither

struct Matrix {
  Matrix(int64_t rows, int64_t columns, Order order, unsigned seed)
      : row_stride(order == Order::columns ? 1 : columns * (order == Order::apart ? 3 : 1)),
        column_stride(order == Order::columns ? rows
                      : order == Order::apart ? 3
                                              : 1),
        data(static_cast<size_t>(rows * columns * 3)) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    for (float& x : data) x = normal(engine);
  }
  float& at(int64_t i, int64_t j) {
    return data[static_cast<size_t>(i * row_stride + j * column_stride)];
  }
  int64_t row_stride, column_stride;
  std::vector<float> data;
};

struct Problem {
  Problem(int64_t rows, int64_t columns, int64_t depth, Order order_a, Order order_b)
      : m(rows),
        n(columns),
        k(depth),
        a(m, k, order_a, 1),
        b(k, n, order_b, 2),
        bias(1, n, Order::rows, 3) {}
  // C, cut into pieces of some rows and panels.
  std::vector<float> by(const GemmKernels<float>& kernels, int64_t piece_rows,
                        int64_t piece_panels) {
    std::vector<float> c(static_cast<size_t>(m * n));
    const GemmCall<float> call{m,
                               n,
                               k,
                               a.data.data(),
                               a.row_stride,
                               a.column_stride,
                               b.data.data(),
                               b.row_stride,
                               b.column_stride,
                               c.data(),
                               n,
                               bias.data.data()};
    const int64_t panels = (n + kernels.panel_columns - 1) / kernels.panel_columns;
    for (int64_t row = 0; row < m; row += piece_rows) {
      for (int64_t panel = 0; panel < panels; panel += piece_panels)
        kernels.multiply(call, {row, std::min(piece_rows, m - row), panel,
                                std::min(piece_panels, panels - panel)});
    }
    return c;
  }
  // The largest error, against sums in f64.
  double error_of(const std::vector<float>& c) {
    double largest = 0;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double exact = bias.at(0, j);
        for (int64_t l = 0; l < k; ++l) exact += double{a.at(i, l)} * b.at(l, j);
        largest = std::max(largest, std::abs(exact - c[static_cast<size_t>(i * n + j)]));
      }
    }
    return largest;
  }
  int64_t m, n, k;
  Matrix a, b, bias;
};

class GemmAmx : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto found = amx_gemm_kernels_f32();
    if (!found) GTEST_SKIP() << "this machine has no AMX";
    amx = *found;
  }
  GemmKernels<float> amx{}, vectors = gemm_kernels_f32();
};

TEST_F(GemmAmx, IsNoLessExactThanVectors) {
  for (const Order order_a : {Order::rows, Order::columns, Order::apart}) {
    for (const Order order_b : {Order::rows, Order::columns, Order::apart}) {
      for (const int64_t k : {1, 31, 64, 500}) {
        Problem problem(45, 70, k, order_a, order_b);
        EXPECT_LE(problem.error_of(problem.by(amx, 64, 8)),
                  1.5 * problem.error_of(problem.by(vectors, 64, 8)) + 1e-6)
            << "k " << k;
      }
    }
  }
}

TEST_F(GemmAmx, BitsDependOnNeitherStridesNorCut) {
  Problem problem(100, 130, 450, Order::rows, Order::rows);
  const std::vector<float> whole = problem.by(amx, 128, 8);
  EXPECT_EQ(problem.by(amx, 32, 1), whole);
  EXPECT_EQ(problem.by(amx, 64, 3), whole);
  for (const Order order : {Order::columns, Order::apart}) {
    Problem other(100, 130, 450, order, order);
    for (int64_t l = 0; l < problem.k; ++l) {
      for (int64_t i = 0; i < problem.m; ++i) other.a.at(i, l) = problem.a.at(i, l);
      for (int64_t j = 0; j < problem.n; ++j) other.b.at(l, j) = problem.b.at(l, j);
    }
    EXPECT_EQ(other.by(amx, 32, 8), whole);
  }
}

TEST_F(GemmAmx, WhatBf16CannotHoldIsMultipliedByVectors) {
  Problem problem(64, 96, 64, Order::rows, Order::columns);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  problem.a.at(5, 7) = infinity;
  problem.a.at(20, 0) = 3.4e38F;
  problem.b.at(9, 11) = std::numeric_limits<float>::quiet_NaN();
  problem.b.at(3, 40) = -infinity;
  const std::vector<float> tiles = problem.by(amx, 64, 8), expected = problem.by(vectors, 64, 8);
  for (int64_t i = 0; i < problem.m; ++i) {
    for (int64_t j = 0; j < problem.n; ++j) {
      const auto at = static_cast<size_t>(i * problem.n + j);
      if (std::isnan(expected[at])) {
        EXPECT_TRUE(std::isnan(tiles[at])) << i << ", " << j;
      } else if (i == 5 || i == 20 || j == 11 || j == 40) {
        EXPECT_EQ(tiles[at], expected[at]) << i << ", " << j;
      } else {
        EXPECT_NEAR(tiles[at], expected[at], 1e-4) << i << ", " << j;
      }
    }
  }
}

TEST(GemmAmxRule, SmallProductsStayWithVectors) {
  EXPECT_FALSE(is_for_amx(1, 4096, 4096));
  EXPECT_FALSE(is_for_amx(64, 64, 64));
  EXPECT_TRUE(is_for_amx(256, 3072, 768));
  EXPECT_TRUE(is_for_amx(3072, 384, 1536));
}

}  // namespace
}  // namespace brrr
