// CUDA kernels of rope.cpp: the table of cosines and sines, and the turn of every pair.
#pragma once

#include "brrr/graph/cuda_call.h"

namespace brrr::kernels {

void rope_table_cuda(const CudaCall& call);
void rope_cuda(const CudaCall& call);

}  // namespace brrr::kernels
