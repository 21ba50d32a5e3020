// The kernel of sample_tokens.cpp.
#pragma once

#include "brrr/graph/cuda_call.h"

namespace brrr::kernels {

void draw_tokens_cuda(const CudaCall& call);

}  // namespace brrr::kernels
