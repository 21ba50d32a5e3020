// CUDA kernels of random.cpp and dropout.cpp. The bits are those of the cpu: a function of key and element.
#pragma once

#include "brrr/graph/cuda_call.h"

namespace brrr::kernels {

void uniform_cuda(const CudaCall& call);
void normal_cuda(const CudaCall& call);
void truncated_normal_cuda(const CudaCall& call);
void randint_cuda(const CudaCall& call);
void bernoulli_cuda(const CudaCall& call);
void dropout_cuda(const CudaCall& call);

}  // namespace brrr::kernels
