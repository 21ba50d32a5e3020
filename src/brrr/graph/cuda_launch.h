// Runs the CUDA kernel of an op, so that what goes wrong is told with the op, its operands and its attributes.
//
// A kernel that fails while it runs is noticed at a later wait, without a name. Where kernels are waited for
// (BRRR_CUDA_WAIT=1 of the command line), nothing is captured: slow, and the error is that of the kernel at hand.
#pragma once

#include "brrr/graph/cuda_call.h"

namespace brrr {

void wait_for_cuda_kernels(bool wait);  // of all threads, from now on; off at first
bool waits_for_cuda_kernels();

void launch_cuda(const CudaKernel& kernel, const CudaCall& call);

// "matmul of bf16[2, 3] strides [3, 1], ... -> bf16[2, 4] {dtype=f32}"
std::string to_text(const CudaCall& call);

}  // namespace brrr
