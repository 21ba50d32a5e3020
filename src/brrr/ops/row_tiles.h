// Loops over one contiguous row in a compute type, for the CPU that this runs on: what softmax, norms
// and losses are made of. Sums and maxima follow the order of ops/reduce_tiles.h.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr {

struct RowKernels {
  double (*max)(const void* x, int64_t count);
  double (*sum)(const void* x, int64_t count);
  double (*sum_of_squares)(const void* x, double center, int64_t count);     // sum (x - center)^2
  void (*exp_shifted)(const void* x, double shift, void* y, int64_t count);  // exp(x - shift)
  void (*divide)(void* y, double divisor, int64_t count);
  void (*subtract_both)(void* y, double a, double b, int64_t count);  // (y - a) - b
  // (x - center) * scale * weight + bias
  void (*normalize)(const void* x, double center, double scale, const void* weight,
                    const void* bias, void* y, int64_t count);
};

RowKernels find_row_kernels(ComputeType type);  // f32 or f64

}  // namespace brrr
