// The rungs of the ladder on a GPU: C = A B for square row-major matrices, each one idea better than the last.
#pragma once

#include <cstdint>

#include "brrr/base/float_formats.h"
#include "brrr/device/cuda/runtime.h"

namespace brrr::plan::ladder {

template <typename T>
struct GpuMatrices {
  const T *a, *b;
  float* c;
  int64_t n;  // a multiple of 128
};

void gpu_naive(const GpuMatrices<float>& m, cuda::Stream stream);   // a thread has a result
void gpu_shared(const GpuMatrices<float>& m, cuda::Stream stream);  // tiles that a block shares
// Tiles of 128 x 128, of which a thread has 8 x 8 results in registers.
void gpu_registers(const GpuMatrices<float>& m, cuda::Stream stream);
// 16 x 16 x 16 at a time on matrix units, operands straight from memory.
void gpu_tensor_cores(const GpuMatrices<bf16>& m, cuda::Stream stream);
// The same units fed from shared memory, where the next tiles arrive during the product of these.
void gpu_staged(const GpuMatrices<bf16>& m, cuda::Stream stream);

}  // namespace brrr::plan::ladder
