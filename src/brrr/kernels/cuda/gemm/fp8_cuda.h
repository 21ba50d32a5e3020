// CUDA kernels of ops/matmul/fp8.h.
#pragma once

#include "brrr/graph/cuda_call.h"

namespace brrr::kernels {

// Rows and columns of whole 16-byte chunks are read once, for both layouts and the largest magnitude.
void quantize_cuda(const CudaCall& call);

// By cuBLASLt, scales and bias in its epilogue, where it takes the factors as they lie; else a product in f32 and a
// kernel that scales it.
void matmul_scaled_cuda(const CudaCall& call);
int64_t matmul_scaled_cuda_workspace(const CudaCall& call);

// The library reads scales at multiples of 16 bytes only; those of a program are neighbours in a vector.
inline constexpr int kScaleSpan = 16 / sizeof(float);
// placed[0] = *a, placed[kScaleSpan] = *b, on the device.
void place_scales_cuda(const CudaCall& call, const float* a, const float* b, float* placed);
// The result of the call from its matmul in f32: times both scales, plus the bias.
void scale_product_cuda(const CudaCall& call, const float* product);

}  // namespace brrr::kernels
