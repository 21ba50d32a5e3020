// The rungs of the ladder on a GPU: C = A B for square row-major matrices, each one idea better than the last.
#pragma once

#include <cstdint>

#include "brrr/base/float_formats.h"
#include "brrr/device/cuda/runtime.h"

namespace brrr::ladder {

template <typename T>
struct GpuMatrices {
  const T *a, *b;
  float* c;
  int64_t n;  // a multiple of 64
};

void gpu_naive(const GpuMatrices<float>& m, cuda::Stream stream);   // a thread has a result
void gpu_shared(const GpuMatrices<float>& m, cuda::Stream stream);  // tiles that a block shares
// 16 x 16 x 16 at a time on matrix units, operands straight from memory.
void gpu_tensor_cores(const GpuMatrices<bf16>& m, cuda::Stream stream);

}  // namespace brrr::ladder
