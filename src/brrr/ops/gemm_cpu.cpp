#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/ops/gemm_cpu.cpp"
#include "brrr/ops/gemm_cpu.h"

#include <algorithm>

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A tile of kRows x kVectors vectors of C stays in registers: 8 x 3 of the 32 AVX-512 registers, 4 x 3 of
// the 16 of AVX2 (3 more hold a row of the panel, 1 the broadcast), 2 x 2 where vectors are emulated.
#if HWY_TARGET <= HWY_AVX3
constexpr int kRows = 8, kVectors = 3;
#elif HWY_TARGET <= HWY_AVX2
constexpr int kRows = 4, kVectors = 3;
#else
constexpr int kRows = 2, kVectors = 2;
#endif

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
constexpr int64_t panel_columns() {
  return kVectors * static_cast<int64_t>(hn::MaxLanes(Tag<T>()));
}

template <typename T>
T* panel_of(const PackedB<T>& packed, int64_t panel) {
  return packed.data + (panel - packed.first) * packed.depth() * panel_columns<T>();
}

template <typename T>
void pack_panel(const GemmCall<T>& call, const PackedB<T>& packed, int64_t panel) {
  constexpr int64_t width = panel_columns<T>();
  const int64_t first = panel * width, columns = std::min(width, call.n - first),
                depth = packed.depth();
  const T* HWY_RESTRICT b = call.b + first * call.b_col_stride + packed.k_begin * call.b_row_stride;
  T* HWY_RESTRICT out = panel_of(packed, panel);
  if (columns == width && call.b_col_stride == 1) {
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t j = 0; j < width; ++j) out[k * width + j] = b[k * call.b_row_stride + j];
    }
    return;
  }
  // Columns of a transposed B are contiguous in k: blocks of k keep the lines of `out` in cache.
  constexpr int64_t kBlock = 16;
  for (int64_t k0 = 0; k0 < depth; k0 += kBlock) {
    const int64_t k1 = std::min(depth, k0 + kBlock);
    for (int64_t j = 0; j < columns; ++j) {
      const T* HWY_RESTRICT column = b + j * call.b_col_stride;
      for (int64_t k = k0; k < k1; ++k) out[k * width + j] = column[k * call.b_row_stride];
    }
    for (int64_t k = k0; k < k1; ++k)
      std::fill(out + k * width + columns, out + (k + 1) * width, T(0));
  }
}

// C (+)= A B for kTileRows rows and one panel, `depth` steps of k. `into` is C itself, or a buffer at the
// right edge.
template <int kTileRows, typename T>
HWY_INLINE void multiply_tile(const T* HWY_RESTRICT a, int64_t row_stride, int64_t col_stride,
                              const T* HWY_RESTRICT b, int64_t depth, T* HWY_RESTRICT into,
                              int64_t into_stride, bool add) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  constexpr int64_t lanes = hn::MaxLanes(d), width = panel_columns<T>();
  V sums[kTileRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::Zero(d);
  }
  for (int64_t k = 0; k < depth; ++k) {
    V row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(d, b + k * width + v * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < kTileRows; ++i) {
      const V factor = hn::Set(d, a[i * row_stride + k * col_stride]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::MulAdd(factor, row[v], sums[i][v]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      T* place = into + i * into_stride + v * lanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, place), sums[i][v]) : sums[i][v], d, place);
    }
  }
}

// At the right edge a whole tile is computed beside C, and the columns that exist are copied.
template <int kTileRows, typename T>
void multiply_edge(const T* a, int64_t row_stride, int64_t col_stride, const T* b, int64_t depth,
                   T* c, int64_t c_stride, int64_t columns, bool add) {
  constexpr int64_t width = panel_columns<T>();
  alignas(64) T buffer[kTileRows * width];
  multiply_tile<kTileRows>(a, row_stride, col_stride, b, depth, buffer, width, false);
  for (int i = 0; i < kTileRows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      T& place = c[i * c_stride + j];
      place = add ? place + buffer[i * width + j] : buffer[i * width + j];
    }
  }
}

// One block of k for kTileRows rows from `row` on and one panel.
template <int kTileRows, typename T>
void multiply_rows(const GemmCall<T>& call, const PackedB<T>& packed, int64_t row, int64_t panel,
                   int64_t k, int64_t depth) {
  constexpr int64_t width = panel_columns<T>();
  const T* a = call.a + row * call.a_row_stride + k * call.a_col_stride;
  const T* b = panel_of(packed, panel) + (k - packed.k_begin) * width;
  T* c = call.c + row * call.c_row_stride + panel * width;
  const int64_t columns = std::min(width, call.n - panel * width);
  if (columns < width) {
    multiply_edge<kTileRows>(a, call.a_row_stride, call.a_col_stride, b, depth, c,
                             call.c_row_stride, columns, k > 0);
  } else {
    multiply_tile<kTileRows>(a, call.a_row_stride, call.a_col_stride, b, depth, c,
                             call.c_row_stride, k > 0);
  }
}

// The last rows of C, fewer than a tile has.
template <int kTileRows, typename T>
void multiply_last_rows(const GemmCall<T>& call, const PackedB<T>& packed, int64_t row,
                        int64_t rows, int64_t panel, int64_t k, int64_t depth) {
  if constexpr (kTileRows > 0) {
    if (rows == kTileRows) return multiply_rows<kTileRows>(call, packed, row, panel, k, depth);
    multiply_last_rows<kTileRows - 1>(call, packed, row, rows, panel, k, depth);
  }
}

template <typename T>
void multiply(const GemmCall<T>& call, const PackedB<T>& packed, int64_t row, int64_t rows,
              int64_t panel, int64_t count) {
  for (int64_t k = packed.k_begin; k < packed.k_end; k += kGemmDepth) {
    const int64_t depth = std::min(kGemmDepth, packed.k_end - k);
    for (int64_t p = panel; p < panel + count; ++p) {
      int64_t i = 0;
      for (; i + kRows <= rows; i += kRows)
        multiply_rows<kRows>(call, packed, row + i, p, k, depth);
      multiply_last_rows<kRows - 1>(call, packed, row + i, rows - i, p, k, depth);
    }
  }
}

GemmKernels<float> kernels_f32() {
  return {kRows, panel_columns<float>(), &pack_panel<float>, &multiply<float>};
}
GemmKernels<double> kernels_f64() {
  return {kRows, panel_columns<double>(), &pack_panel<double>, &multiply<double>};
}

}  // namespace brrr::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr {
HWY_EXPORT(kernels_f32);
HWY_EXPORT(kernels_f64);
GemmKernels<float> gemm_kernels_f32() { return HWY_DYNAMIC_DISPATCH(kernels_f32)(); }
GemmKernels<double> gemm_kernels_f64() { return HWY_DYNAMIC_DISPATCH(kernels_f64)(); }
}  // namespace brrr
#endif
