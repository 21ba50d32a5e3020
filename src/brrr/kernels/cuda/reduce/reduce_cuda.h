// CUDA kernels of the reductions. Attributes: "axes" (sorted, not negative) and "keep_dims".
#pragma once

#include "brrr/graph/cuda_call.h"

namespace brrr::kernels {

void sum_cuda(const CudaCall& call);
void mean_cuda(const CudaCall& call);
void max_cuda(const CudaCall& call);
void min_cuda(const CudaCall& call);
void prod_cuda(const CudaCall& call);
void argmax_cuda(const CudaCall& call);
void argmin_cuda(const CudaCall& call);
void cumsum_cuda(const CudaCall& call);

// Scratch for the parts of long reductions.
int64_t reduce_cuda_workspace(const CudaCall& call);

}  // namespace brrr::kernels
