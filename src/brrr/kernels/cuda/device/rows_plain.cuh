// Rows of any dtype and layout along the last axis: a block has a row, and reads it element by element as often
// as it is asked for.
#pragma once

#include "brrr/kernels/cuda/device/thread_groups.cuh"

namespace brrr::kernels {

// An operand as rows.
struct RowsOf {
  Elements data;
  Walk rows;
  int64_t stride;  // along the row

  explicit RowsOf(const Operand& x) : data(x), rows{}, stride(1) {
    Layout outer = *x.layout;
    stride = outer.strides.back();
    outer.shape.pop_back();
    outer.strides.pop_back();
    rows = walk_of(outer);
  }
};

// Columns rank, rank + size, ... of one row, computed with in C.
template <typename C>
struct PlainRow {
  const RowsOf& x;
  int64_t start, cols;

  __device__ PlainRow(const RowsOf& operand, int64_t row, int64_t count)
      : x(operand), start(operand.rows.position(row)), cols(count) {}

  __device__ C at(int64_t col) const { return x.data.load<C>(start + col * x.stride); }
  __device__ void set(int64_t col, C value) const {
    x.data.store<C>(start + col * x.stride, value);
  }
  // visit(column) for the columns of this thread
  template <typename Visit>
  __device__ void for_each_column(const Visit& visit) const {
    for (int64_t col = threadIdx.x; col < cols; col += blockDim.x) visit(col);
  }
};

inline int plain_row_threads(int64_t cols) {
  return cols <= 64 ? 32 : cols <= 512 ? 128 : cols <= 4096 ? 256 : 1024;
}

// Calls body.template operator()<C>() with the type that rows of this dtype are computed in.
template <typename Body>
void visit_plain(DType dtype, const Body& body) {
  dtype == DType::f64 ? body.template operator()<double>() : body.template operator()<float>();
}

}  // namespace brrr::kernels
