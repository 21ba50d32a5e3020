// CUDA kernels of index.cpp, index_select.cpp, sort.cpp and pool.cpp. Ids that name no place are reported
// (device/cuda/fault.h), read nothing and give 0.
#pragma once

#include "brrr/graph/cuda_call.h"

namespace brrr::kernels {

void gather_cuda(const CudaCall& call);
void embedding_cuda(const CudaCall& call);
void index_select_cuda(const CudaCall& call);
void scatter_add_cuda(const CudaCall& call);
int64_t scatter_add_cuda_workspace(const CudaCall& call);
// Where sums grow in the result itself; otherwise they do in scratch of a wider dtype.
bool scatter_adds_in_place(const Operand& output);

// Without atomics: ids are sorted with their places, and each row is summed in the order of its ids.
void embedding_grad_cuda(const CudaCall& call);
int64_t embedding_grad_cuda_workspace(const CudaCall& call);

void sort_cuda(const CudaCall& call);  // and topk
int64_t sort_cuda_workspace(const CudaCall& call);
void permutation_cuda(const CudaCall& call);
int64_t permutation_cuda_workspace(const CudaCall& call);

void max_pool2d_cuda(const CudaCall& call);

}  // namespace brrr::kernels
