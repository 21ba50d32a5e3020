// CUDA kernels of layer_norm, rms_norm and their gradients.
#pragma once

#include "brrr/graph/cuda_call.h"

namespace brrr::kernels {

void layer_norm_cuda(const CudaCall& call);
void rms_norm_cuda(const CudaCall& call);
void layer_norm_backward_cuda(const CudaCall& call);
void rms_norm_backward_cuda(const CudaCall& call);
int64_t norm_backward_cuda_workspace(const CudaCall& call);

}  // namespace brrr::kernels
