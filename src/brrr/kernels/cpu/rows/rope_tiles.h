// The loops of rope for the CPU that this runs on.
#pragma once

#include <cstdint>

namespace brrr::kernels {

// Rows of one head, one position after another, and their rows of the table.
template <typename T>
struct RopeRows {
  const T* x;
  int64_t x_stride;
  T* y;
  int64_t y_stride;
  const T* table;  // [rows, 2, pairs]: cosines, then sines
  int64_t rows, columns, pairs;
  bool interleaved, inverse;
};

template <typename T>
struct RopeKernels {
  // The table's row for a position.
  void (*fill_table)(double position, const double* frequencies, int64_t pairs, T* row);
  void (*turn)(const RopeRows<T>& rows);
};

RopeKernels<float> rope_kernels_f32();
RopeKernels<double> rope_kernels_f64();

}  // namespace brrr::kernels
