// CUDA kernels of softmax, log_softmax, cross_entropy and their gradients.
#pragma once

#include "brrr/graph/cuda_call.h"

namespace brrr::kernels {

void softmax_cuda(const CudaCall& call);
void log_softmax_cuda(const CudaCall& call);
void softmax_backward_cuda(const CudaCall& call);
void log_softmax_backward_cuda(const CudaCall& call);
void cross_entropy_cuda(const CudaCall& call);
void cross_entropy_backward_cuda(const CudaCall& call);
void classifier_cuda(const CudaCall& call);

}  // namespace brrr::kernels
