#include "brrr/plan/ladder/ladder_kernels.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "brrr/base/error.h"
#include "brrr/base/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__GNUC__) && !defined(__clang__)
#define BRRR_SCALAR __attribute__((optimize("no-tree-vectorize,no-tree-slp-vectorize"), noinline))
#else
#define BRRR_SCALAR __attribute__((noinline))
#endif

namespace brrr::plan::ladder {
namespace {

constexpr int64_t kDepth = 192;  // of k in one tile: panels of 4 and 16 columns fit the caches

// A number as an interpreter has it.
class Boxed {
 public:
  virtual ~Boxed() = default;
  virtual std::unique_ptr<Boxed> times(const Boxed& other) const = 0;
  virtual double value() const = 0;
};
class BoxedFloat final : public Boxed {
 public:
  explicit BoxedFloat(double value) : value_(value) {}
  std::unique_ptr<Boxed> times(const Boxed& other) const override {
    return std::make_unique<BoxedFloat>(value_ * other.value());
  }
  double value() const override { return value_; }

 private:
  double value_;
};

// Columns [j, j + width) of rows [k0, k1) of B, one row of the panel after the other.
void pack_columns(const Matrices& m, int64_t k0, int64_t k1, int64_t j, int64_t width,
                  float* panel) {
  for (int64_t k = k0; k < k1; ++k)
    for (int64_t x = 0; x < width; ++x) *panel++ = m.b[k * m.n + j + x];
}

template <int kRows, int kColumns>
BRRR_SCALAR void block(const float* a, int64_t a_stride, const float* b, int64_t b_stride,
                       int64_t depth, float* c, int64_t c_stride) {
  float sums[kRows][kColumns];
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) sums[i][j] = c[i * c_stride + j];
  for (int64_t k = 0; k < depth; ++k)
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kColumns; ++j) sums[i][j] += a[i * a_stride + k] * b[k * b_stride + j];
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) c[i * c_stride + j] = sums[i][j];
}

void clear(const Matrices& m) { std::fill(m.c, m.c + m.n * m.n, 0.0F); }

template <int kRows, int kColumns>
void blocks_in_place(const Matrices& m) {
  clear(m);
  for (int64_t i = 0; i < m.n; i += kRows)
    for (int64_t j = 0; j < m.n; j += kColumns)
      block<kRows, kColumns>(m.a + i * m.n, m.n, m.b + j, m.n, m.n, m.c + i * m.n + j, m.n);
}

void packed_pieces(const Matrices& m, int64_t depth) {
  constexpr int kRows = 4, kColumns = 4;
  clear(m);
  std::vector<float> panel(static_cast<size_t>(depth * kColumns));
  for (int64_t k = 0; k < m.n; k += depth) {
    const int64_t end = std::min(m.n, k + depth);
    for (int64_t j = 0; j < m.n; j += kColumns) {
      pack_columns(m, k, end, j, kColumns, panel.data());
      for (int64_t i = 0; i < m.n; i += kRows)
        block<kRows, kColumns>(m.a + i * m.n + k, m.n, panel.data(), kColumns, end - k,
                               m.c + i * m.n + j, m.n);
    }
  }
}

#if defined(__x86_64__)
constexpr int64_t kSimdRows = 6, kSimdColumns = 16;

// Six rows of A against a panel of sixteen columns: twelve vectors of sums in registers.
__attribute__((target("avx2,fma"))) void simd_block(const float* a, int64_t a_stride,
                                                    const float* panel, int64_t depth, float* c,
                                                    int64_t c_stride) {
  __m256 sums[kSimdRows][2];
  for (int i = 0; i < kSimdRows; ++i) {
    sums[i][0] = _mm256_loadu_ps(c + i * c_stride);
    sums[i][1] = _mm256_loadu_ps(c + i * c_stride + 8);
  }
  for (int64_t k = 0; k < depth; ++k) {
    const __m256 left = _mm256_loadu_ps(panel + k * kSimdColumns),
                 right = _mm256_loadu_ps(panel + k * kSimdColumns + 8);
    for (int i = 0; i < kSimdRows; ++i) {
      const __m256 x = _mm256_broadcast_ss(a + i * a_stride + k);
      sums[i][0] = _mm256_fmadd_ps(x, left, sums[i][0]);
      sums[i][1] = _mm256_fmadd_ps(x, right, sums[i][1]);
    }
  }
  for (int i = 0; i < kSimdRows; ++i) {
    _mm256_storeu_ps(c + i * c_stride, sums[i][0]);
    _mm256_storeu_ps(c + i * c_stride + 8, sums[i][1]);
  }
}

constexpr int64_t kWideRows = 8, kWideColumns = 48;

// Eight rows against a panel of 48 columns: 24 vectors of sums, of 32 registers.
__attribute__((target("avx512f"))) void wide_simd_block(const float* a, int64_t a_stride,
                                                        const float* panel, int64_t depth, float* c,
                                                        int64_t c_stride) {
  __m512 sums[kWideRows][3];
  for (int i = 0; i < kWideRows; ++i)
    for (int j = 0; j < 3; ++j) sums[i][j] = _mm512_loadu_ps(c + i * c_stride + 16 * j);
  for (int64_t k = 0; k < depth; ++k) {
    const __m512 first = _mm512_loadu_ps(panel + k * kWideColumns),
                 second = _mm512_loadu_ps(panel + k * kWideColumns + 16),
                 third = _mm512_loadu_ps(panel + k * kWideColumns + 32);
    for (int i = 0; i < kWideRows; ++i) {
      const __m512 x = _mm512_set1_ps(a[i * a_stride + k]);
      sums[i][0] = _mm512_fmadd_ps(x, first, sums[i][0]);
      sums[i][1] = _mm512_fmadd_ps(x, second, sums[i][1]);
      sums[i][2] = _mm512_fmadd_ps(x, third, sums[i][2]);
    }
  }
  for (int i = 0; i < kWideRows; ++i)
    for (int j = 0; j < 3; ++j) _mm512_storeu_ps(c + i * c_stride + 16 * j, sums[i][j]);
}

using BlockKernel = void (*)(const float*, int64_t, const float*, int64_t, float*, int64_t);

// Rows [begin, end) of C, in blocks of `rows` by `columns`.
void rows_in_blocks(const Matrices& m, int64_t begin, int64_t end, int64_t rows, int64_t columns,
                    BlockKernel kernel) {
  std::vector<float> panel(static_cast<size_t>(kDepth * columns));
  std::fill(m.c + begin * m.n, m.c + end * m.n, 0.0F);
  for (int64_t k = 0; k < m.n; k += kDepth) {
    const int64_t stop = std::min(m.n, k + kDepth);
    for (int64_t j = 0; j < m.n; j += columns) {
      pack_columns(m, k, stop, j, columns, panel.data());
      for (int64_t i = begin; i < end; i += rows)
        kernel(m.a + i * m.n + k, m.n, panel.data(), stop - k, m.c + i * m.n + j, m.n);
    }
  }
}
void simd_rows(const Matrices& m, int64_t begin, int64_t end) {
  rows_in_blocks(m, begin, end, kSimdRows, kSimdColumns, simd_block);
}
void wide_rows(const Matrices& m, int64_t begin, int64_t end) {
  rows_in_blocks(m, begin, end, kWideRows, kWideColumns, wide_simd_block);
}
#else
void simd_rows(const Matrices&, int64_t, int64_t) { fail("the ladder has vectors for x86 only"); }
void wide_rows(const Matrices& m, int64_t begin, int64_t end) { simd_rows(m, begin, end); }
#endif

}  // namespace

double boxed_products(int64_t count) {
  const std::unique_ptr<Boxed> factor = std::make_unique<BoxedFloat>(1.0000001);
  std::unique_ptr<Boxed> product = std::make_unique<BoxedFloat>(1.0);
  for (int64_t i = 0; i < count; ++i) product = product->times(*factor);
  return product->value();
}

BRRR_SCALAR void naive(const Matrices& m) {
  for (int64_t i = 0; i < m.n; ++i)
    for (int64_t j = 0; j < m.n; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < m.n; ++k) sum += m.a[i * m.n + k] * m.b[k * m.n + j];
      m.c[i * m.n + j] = sum;
    }
}

BRRR_SCALAR void loop_order(const Matrices& m) {
  clear(m);
  for (int64_t i = 0; i < m.n; ++i)
    for (int64_t k = 0; k < m.n; ++k) {
      const float x = m.a[i * m.n + k];
      for (int64_t j = 0; j < m.n; ++j) m.c[i * m.n + j] += x * m.b[k * m.n + j];
    }
}

void register_block(const Matrices& m) { blocks_in_place<4, 4>(m); }
void wide_block(const Matrices& m) { blocks_in_place<6, 8>(m); }
void packed(const Matrices& m) { packed_pieces(m, m.n); }
void tiled(const Matrices& m) { packed_pieces(m, kDepth); }

bool has_simd() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
#else
  return false;
#endif
}
bool has_wide_simd() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") != 0;
#else
  return false;
#endif
}
void simd(const Matrices& m) { simd_rows(m, 0, m.n); }
void wide_simd(const Matrices& m) { wide_rows(m, 0, m.n); }
void threaded(const Matrices& m) {
  constexpr int64_t kPieceRows = 48;
  const auto rows = has_wide_simd() ? wide_rows : simd_rows;
  thread_pool().for_each_piece(m.n / kPieceRows, [&](int64_t piece) {
    rows(m, piece * kPieceRows, (piece + 1) * kPieceRows);
  });
}

}  // namespace brrr::plan::ladder
