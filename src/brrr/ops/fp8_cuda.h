// CUDA kernels of ops/fp8.h.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr {

// Rows and columns of whole 16-byte chunks are read once, for both layouts and the largest magnitude.
void quantize_cuda(const CudaCall& call);

// By cuBLASLt, scales and bias in its epilogue, where it takes the factors as they lie; else a product in f32 and a
// kernel that scales it.
void matmul_scaled_cuda(const CudaCall& call);
int64_t matmul_scaled_cuda_workspace(const CudaCall& call);

}  // namespace brrr
