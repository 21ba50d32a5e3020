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

template <typename T>
struct GemmKernels {
  int64_t tile_rows, panel_columns;  // of the inner kernel on this CPU
  // Copies columns [panel * panel_columns, ...) of B, all of k, into `packed`: k * panel_columns values,
  // zeros where B ends.
  void (*pack_panel)(const GemmCall<T>& call, int64_t panel, T* packed);
  // Rows [row, row + rows) of C for the columns of panels [panel, panel + panels).
  void (*multiply)(const GemmCall<T>& call, const T* packed, int64_t row, int64_t rows, int64_t panel, int64_t panels);
};

GemmKernels<float> gemm_kernels_f32();
GemmKernels<double> gemm_kernels_f64();

}  // namespace brrr
