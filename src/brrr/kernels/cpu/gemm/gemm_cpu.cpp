#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/kernels/cpu/gemm/gemm_cpu.cpp"
#include "brrr/kernels/cpu/gemm/gemm_cpu.h"

#include <algorithm>

#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE {

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

constexpr int64_t kRowBlock = 128;  // rows of A that are copied at a time
constexpr int64_t kStepsAhead = 8;  // of k, that lines of B are asked for before they are needed

#if HWY_TARGET != HWY_SCALAR
// One vector made of 16-byte blocks, `stride` elements apart.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const float* HWY_RESTRICT from, int64_t stride) {
  if constexpr (hn::MaxLanes(d) <= 4) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    const int64_t blocks_below = static_cast<int64_t>(hn::MaxLanes(half)) / 4;
    return hn::Combine(d, load_blocks(half, from + blocks_below * stride, stride),
                       load_blocks(half, from, stride));
  }
}

// A vector of columns of a B that is contiguous along k: out[k][lane] = columns[lane][k]. Four steps of k
// at a time: each block of a vector takes four columns, and is transposed in registers.
template <int64_t kWidth, class D>
HWY_INLINE void pack_transposed(D d, const float* HWY_RESTRICT columns, int64_t stride,
                                int64_t depth, float* HWY_RESTRICT out) {
  int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    const auto c0 = load_blocks(d, columns + k, 4 * stride),
               c1 = load_blocks(d, columns + k + stride, 4 * stride),
               c2 = load_blocks(d, columns + k + 2 * stride, 4 * stride),
               c3 = load_blocks(d, columns + k + 3 * stride, 4 * stride);
    const auto even01 = hn::InterleaveLower(d, c0, c2), odd01 = hn::InterleaveLower(d, c1, c3),
               even23 = hn::InterleaveUpper(d, c0, c2), odd23 = hn::InterleaveUpper(d, c1, c3);
    hn::StoreU(hn::InterleaveLower(d, even01, odd01), d, out + k * kWidth);
    hn::StoreU(hn::InterleaveUpper(d, even01, odd01), d, out + (k + 1) * kWidth);
    hn::StoreU(hn::InterleaveLower(d, even23, odd23), d, out + (k + 2) * kWidth);
    hn::StoreU(hn::InterleaveUpper(d, even23, odd23), d, out + (k + 3) * kWidth);
  }
  for (; k < depth; ++k) {
    for (int64_t lane = 0; lane < static_cast<int64_t>(hn::MaxLanes(d)); ++lane)
      out[k * kWidth + lane] = columns[lane * stride + k];
  }
}
#endif

// Rows of B that are contiguous, cut into `panels` whole panels. Lines are asked for some rows ahead: rows
// lie a page or more apart, where the hardware does not look.
template <typename T>
void pack_rows(const T* HWY_RESTRICT b, int64_t row_stride, int64_t depth, int64_t panels,
               T* HWY_RESTRICT out) {
  constexpr int64_t width = panel_columns<T>(), line = 64 / static_cast<int64_t>(sizeof(T)),
                    rows_ahead = 12;
  for (int64_t i = 0; i < depth; ++i) {
    const T* HWY_RESTRICT row = b + i * row_stride;
    for (int64_t j = 0; j < panels * width; j += line)
      hwy::Prefetch(row + rows_ahead * row_stride + j);
    for (int64_t p = 0; p < panels; ++p) {
      T* HWY_RESTRICT to = out + (p * depth + i) * width;
      for (int64_t j = 0; j < width; ++j) to[j] = row[p * width + j];
    }
  }
}

// A panel with fewer columns than the others, or with strides of any kind; zeros fill it up.
template <typename T>
void pack_any(const T* HWY_RESTRICT b, int64_t row_stride, int64_t column_stride, int64_t depth,
              int64_t columns, T* HWY_RESTRICT out) {
  constexpr int64_t width = panel_columns<T>();
  for (int64_t i = 0; i < depth; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      out[i * width + j] = b[i * row_stride + j * column_stride];
    std::fill(out + i * width + columns, out + (i + 1) * width, T(0));
  }
}

// Rows [k, k + depth) of the piece's panels of B: panel after panel, each row after row.
template <typename T>
void pack_panels(const GemmCall<T>& call, const GemmPiece& piece, int64_t k, int64_t depth,
                 T* HWY_RESTRICT out) {
  constexpr int64_t width = panel_columns<T>();
  const int64_t row_stride = call.b_row_stride, column_stride = call.b_col_stride;
  const T* HWY_RESTRICT b = call.b + piece.panel * width * column_stride + k * row_stride;
  const int64_t columns = std::min(piece.panels * width, call.n - piece.panel * width),
                whole = columns / width;
  int64_t packed = 0;  // panels done
  if (column_stride == 1) {
    pack_rows(b, row_stride, depth, whole, out);
    packed = whole;
  }
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    constexpr int64_t lanes = hn::MaxLanes(Tag<T>());
    for (; row_stride == 1 && packed < whole; ++packed) {
      for (int64_t j = 0; j < width; j += lanes)
        pack_transposed<width>(Tag<T>(), b + (packed * width + j) * column_stride, column_stride,
                               depth, out + packed * width * depth + j);
    }
  }
#endif
  for (; packed < piece.panels; ++packed) {
    pack_any(b + packed * width * column_stride, row_stride, column_stride, depth,
             std::min(width, columns - packed * width), out + packed * width * depth);
  }
}

// Rows of A as an inner tile reads them: element (i, k) at data[i * row_stride + k * col_stride], and
// tile_stride from one tile of kRows rows to the next.
template <typename T>
struct TileRows {
  const T* data;
  int64_t row_stride, col_stride, tile_stride;
};

// Tiles of copied rows start one line further than they need to: at multiples of 4 KiB all of them would
// fall on the same few lines of the L1 cache.
template <typename T>
constexpr int64_t kTilePad = 64 / sizeof(T);

// Whole tiles of a transposed A, whose rows lie side by side at every step of k. Lines are asked for some
// steps ahead, since steps lie a page or more apart.
template <typename T>
void copy_steps(const T* HWY_RESTRICT a, int64_t step_stride, int64_t tiles, int64_t depth,
                int64_t tile_stride, T* HWY_RESTRICT buffer) {
  constexpr int64_t steps_ahead = 12, line = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < depth; ++i) {
    const T* HWY_RESTRICT step = a + i * step_stride;
    for (int64_t r = 0; r < tiles * kRows; r += line)
      hwy::Prefetch(step + steps_ahead * step_stride + r);
    for (int64_t t = 0; t < tiles; ++t) {
      for (int64_t lane = 0; lane < kRows; ++lane)
        buffer[t * tile_stride + i * kRows + lane] = step[t * kRows + lane];
    }
  }
}

// Contiguous rows are read where they lie, unless they lie multiples of 4 KiB apart and so fall on the
// same lines of the L1 cache. Other rows would touch one line a step. Those are copied to `buffer`, tile
// after tile, step after step.
template <typename T>
TileRows<T> rows_of_a(const GemmCall<T>& call, int64_t row, int64_t rows, int64_t k, int64_t depth,
                      T* HWY_RESTRICT buffer) {
  const T* HWY_RESTRICT a = call.a + row * call.a_row_stride + k * call.a_col_stride;
  const bool collide = call.a_row_stride * static_cast<int64_t>(sizeof(T)) % 4096 == 0;
  if (call.a_col_stride == 1 && !collide)
    return {a, call.a_row_stride, 1, kRows * call.a_row_stride};
  const int64_t tile_stride = kRows * depth + kTilePad<T>;
  int64_t copied = 0;  // rows done, in whole tiles
  if (call.a_row_stride == 1) {
    copied = rows / kRows * kRows;
    copy_steps(a, call.a_col_stride, copied / kRows, depth, tile_stride, buffer);
  }
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    for (; call.a_col_stride == 1 && copied + kRows <= rows; copied += kRows)
      pack_transposed<kRows>(hn::CappedTag<float, kRows>(), a + copied * call.a_row_stride,
                             call.a_row_stride, depth, buffer + copied / kRows * tile_stride);
  }
#endif
  for (int64_t r = copied; r < rows; ++r) {
    T* tile = buffer + r / kRows * tile_stride + r % kRows;
    for (int64_t i = 0; i < depth; ++i)
      tile[i * kRows] = a[r * call.a_row_stride + i * call.a_col_stride];
  }
  return {buffer, 1, kRows, tile_stride};
}

// C (+)= A B for kTileRows rows and one panel, `depth` steps of k, from the bias on where there is one.
// `into` is C itself, or a buffer at the right edge. The tile of C is asked for at the start, lines of B
// some steps ahead.
template <int kTileRows, typename T>
HWY_INLINE void multiply_tile(const T* HWY_RESTRICT a, int64_t row_stride, int64_t col_stride,
                              const T* HWY_RESTRICT b, int64_t depth, T* HWY_RESTRICT into,
                              int64_t into_stride, bool add, const T* bias) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  constexpr int64_t lanes = hn::MaxLanes(d), width = panel_columns<T>();
  V sums[kTileRows][kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const V start = bias ? hn::LoadU(d, bias + v * lanes) : hn::Zero(d);
#pragma GCC unroll 16
    for (int i = 0; i < kTileRows; ++i) sums[i][v] = start;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) hwy::Prefetch(into + i * into_stride + v * lanes);
  }
#pragma GCC unroll 2
  for (int64_t k = 0; k < depth; ++k) {
    V row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      row[v] = hn::LoadU(d, b + k * width + v * lanes);
      hwy::Prefetch(b + (k + kStepsAhead) * width + v * lanes);
    }
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
                   T* c, int64_t c_stride, int64_t columns, bool add, const T* bias) {
  constexpr int64_t width = panel_columns<T>();
  alignas(64) T buffer[kTileRows * width];
  alignas(64) T whole_bias[width] = {};
  if (bias) std::copy_n(bias, columns, whole_bias);
  multiply_tile<kTileRows, T>(a, row_stride, col_stride, b, depth, buffer, width, false,
                              whole_bias);
  for (int i = 0; i < kTileRows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      T& place = c[i * c_stride + j];
      place = add ? place + buffer[i * width + j] : buffer[i * width + j];
    }
  }
}

// A block of k: its length, and whether the sums begin with it.
struct DepthBlock {
  int64_t depth;
  bool first;
};

// One tile of C: kTileRows rows at `row`, one packed panel.
template <int kTileRows, typename T>
void multiply_rows(const GemmCall<T>& call, const TileRows<T>& a, const T* b, int64_t row,
                   int64_t panel, const DepthBlock& block) {
  constexpr int64_t width = panel_columns<T>();
  T* c = call.c + row * call.c_row_stride + panel * width;
  const T* bias = block.first && call.bias ? call.bias + panel * width : nullptr;
  const int64_t columns = std::min(width, call.n - panel * width);
  if (columns < width) {
    multiply_edge<kTileRows>(a.data, a.row_stride, a.col_stride, b, block.depth, c,
                             call.c_row_stride, columns, !block.first, bias);
  } else {
    multiply_tile<kTileRows>(a.data, a.row_stride, a.col_stride, b, block.depth, c,
                             call.c_row_stride, !block.first, bias);
  }
}

// The last rows of C, fewer than a tile has.
template <int kTileRows, typename T>
void multiply_last_rows(const GemmCall<T>& call, const TileRows<T>& a, const T* b, int64_t row,
                        int64_t rows, int64_t panel, const DepthBlock& block) {
  if constexpr (kTileRows > 0) {
    if (rows == kTileRows) return multiply_rows<kTileRows>(call, a, b, row, panel, block);
    multiply_last_rows<kTileRows - 1>(call, a, b, row, rows, panel, block);
  }
}

// Asks for a part of the next tile of A while a panel is multiplied: line p, p + panels, ... of each row.
template <typename T>
HWY_INLINE void request_rows(const TileRows<T>& next, int64_t depth, int64_t p, int64_t panels) {
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T));
  if (next.col_stride != 1) return;  // copied: it is in the cache
  for (int64_t k = p * line; k < depth; k += panels * line) {
    for (int r = 0; r < kRows; ++r) hwy::Prefetch(next.data + r * next.row_stride + k);
  }
}

// Some rows and all panels of the piece: a tile of A stays in the L1 cache while the panels pass by.
template <typename T>
void multiply_block(const GemmCall<T>& call, const GemmPiece& piece, TileRows<T> a,
                    const T* packed_b, int64_t row, int64_t rows, const DepthBlock& block) {
  const int64_t panel_elements = panel_columns<T>() * block.depth;
  for (int64_t i = 0; i < rows; i += kRows, a.data += a.tile_stride) {
    TileRows<T> next = a;
    next.data += next.tile_stride;
    for (int64_t p = 0; p < piece.panels; ++p) {
      request_rows(next, block.depth, p, piece.panels);
      const T* b = packed_b + p * panel_elements;
      if (i + kRows <= rows) {
        multiply_rows<kRows>(call, a, b, row + i, piece.panel + p, block);
      } else {
        multiply_last_rows<kRows - 1>(call, a, b, row + i, rows - i, piece.panel + p, block);
      }
    }
  }
}

// The buffers live on the stack of the thread that works: their size is fixed, and their pages stay warm.
template <typename T>
void multiply(const GemmCall<T>& call, const GemmPiece& piece) {
  constexpr int64_t width = panel_columns<T>();
  alignas(64) T packed_b[kMaxPiecePanels * width * kGemmDepth];
  alignas(64) T packed_a[kRowBlock * kGemmDepth + kRowBlock / kRows * kTilePad<T>];
  for (int64_t k = 0; k < call.k; k += kGemmDepth) {
    const DepthBlock block{.depth = std::min(kGemmDepth, call.k - k), .first = k == 0};
    pack_panels(call, piece, k, block.depth, packed_b);
    for (int64_t row = piece.row; row < piece.row + piece.rows; row += kRowBlock) {
      const int64_t rows = std::min(kRowBlock, piece.row + piece.rows - row);
      const TileRows<T> a = rows_of_a(call, row, rows, k, block.depth, packed_a);
      multiply_block(call, piece, a, packed_b, row, rows, block);
    }
  }
}

GemmKernels<float> kernels_f32() { return {kRows, panel_columns<float>(), &multiply<float>}; }
GemmKernels<double> kernels_f64() { return {kRows, panel_columns<double>(), &multiply<double>}; }

}  // namespace brrr::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr::kernels {
HWY_EXPORT(kernels_f32);
HWY_EXPORT(kernels_f64);
GemmKernels<float> gemm_kernels_f32() { return HWY_DYNAMIC_DISPATCH(kernels_f32)(); }
GemmKernels<double> gemm_kernels_f64() { return HWY_DYNAMIC_DISPATCH(kernels_f64)(); }
}  // namespace brrr::kernels
#endif
