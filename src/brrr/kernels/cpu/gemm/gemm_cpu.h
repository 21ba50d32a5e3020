// Matrix products on the CPU, f32 and f64, written for the vector registers of each target.
//
//   C[i, j] = bias[j] + sum over k of A[i, k] B[k, j]        A and B with any strides, C row-major
//
// The result is cut into pieces of some rows and some panels of columns, and a piece belongs to one
// thread from beginning to end: it copies its panels of B so that the inner loop reads them in order, and
// rows of A where they are not contiguous; nobody waits for anybody. The sum over k runs in blocks of
// kGemmDepth: inside a block by fused multiply-adds in the order of k, blocks added one after another.
// Every element of C has that one order, so its bits do not depend on strides or on how the product is
// cut.
#pragma once

#include <cstdint>

namespace brrr::kernels {

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
  const T* bias = nullptr;  // n elements, where the sums begin
};

// Rows [row, row + rows) and panels [panel, panel + panels) of C; panels <= kMaxPiecePanels.
struct GemmPiece {
  int64_t row, rows, panel, panels;
};

template <typename T>
struct GemmKernels {
  int64_t tile_rows, panel_columns;  // of the inner kernel on this CPU
  void (*multiply)(const GemmCall<T>& call, const GemmPiece& piece);
};

inline constexpr int64_t kGemmDepth = 384;     // steps of k between additions to C
inline constexpr int64_t kMaxPiecePanels = 8;  // a block of them, 576 KiB, stays in the L2 cache

GemmKernels<float> gemm_kernels_f32();
GemmKernels<double> gemm_kernels_f64();

}  // namespace brrr::kernels
