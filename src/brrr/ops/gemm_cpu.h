// Matrix products on the CPU, f32 and f64, written for the vector registers of each target.
//
//   C[i, j] = sum over k of A[i, k] B[k, j]          A and B with any strides, C row-major
//
// B is copied once into panels of `panel_columns` columns, so that the inner loop reads it in order;
// A is read where it lies, one broadcast a row. The sum over k runs in blocks of kGemmDepth: inside a
// block by fused multiply-adds in the order of k, blocks added one after another. Every element of C
// has that one order, so its bits do not depend on how the product is cut into pieces.
#pragma once

#include <cstdint>

namespace brrr {

// One problem in elements of T; strides count elements.
template <typename T>
struct GemmCall {
  int64_t m, n, k;
  const T* a;
  int64_t a_row_stride, a_col_stride;
  const T* b;
  int64_t b_row_stride, b_col_stride;
  T* c;
  int64_t c_row_stride;
};

// A part of B packed for the inner loop: panels [first, first + count) and rows [k_begin, k_end) of them.
// A panel holds panel_columns columns, row after row; zeros stand where B has fewer columns.
template <typename T>
struct PackedB {
  T* data;
  int64_t first, count;
  int64_t k_begin, k_end;
  int64_t depth() const { return k_end - k_begin; }
};

template <typename T>
struct GemmKernels {
  int64_t tile_rows, panel_columns;  // of the inner kernel on this CPU
  void (*pack_panel)(const GemmCall<T>& call, const PackedB<T>& packed, int64_t panel);
  // Adds the products of packed.k_begin .. k_end to rows [row, row + rows) of C, for the columns of panels
  // [panel, panel + count). The part that begins at k = 0 sets C instead.
  void (*multiply)(const GemmCall<T>& call, const PackedB<T>& packed, int64_t row, int64_t rows,
                   int64_t panel, int64_t count);
};

// Parts of k must begin at multiples of this, or the order of additions would change.
inline constexpr int64_t kGemmDepth = 224;

GemmKernels<float> gemm_kernels_f32();
GemmKernels<double> gemm_kernels_f64();

}  // namespace brrr
