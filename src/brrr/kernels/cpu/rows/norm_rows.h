// Layer and RMS normalisation, one contiguous row at a time, for the CPU that this runs on.
#pragma once

#include "brrr/graph/op_def.h"
#include "brrr/kernels/cpu/rows/row_store.h"

namespace brrr::kernels {

// Rows are `count` elements of the compute type.
struct NormForward {
  const void *x, *weight, *bias;  // no bias: null
  void* y;
  int64_t count;
  double eps;
  RowStore store;
};
// y = (x - center) * scale * weight + bias
struct NormStatistics {
  double center, scale;
};

// With g = dy * weight and x_hat = (x - center) * scale:
//   dx = (g - mean(g) - x_hat * mean(g * x_hat)) * scale, without mean(g) where nothing is centred;
// dy * x_hat and dy are added to the sums of the columns.
struct NormBackward {
  const void *x, *dy, *weight;
  void* dx;
  void *weight_sums, *bias_sums;  // no bias: null
  int64_t count;
  NormStatistics statistics;
  RowStore store;
};

struct NormRows {
  NormStatistics (*layer_norm)(const NormForward&);  // center the mean, scale 1 / std
  NormStatistics (*rms_norm)(const NormForward&);    // center 0, scale 1 / rms
  void (*layer_norm_backward)(const NormBackward&);
  void (*rms_norm_backward)(const NormBackward&);
  // totals[i] += part[i], the totals in f64
  void (*add_part)(double* totals, const void* part, int64_t count);
};
NormRows find_norm_rows(ComputeType type);  // f32 or f64

}  // namespace brrr::kernels
