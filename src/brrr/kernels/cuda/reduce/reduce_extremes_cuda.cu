// Largest and smallest elements on the GPU.
#include "brrr/kernels/cuda/reduce/reduce.cuh"

namespace brrr::kernels {

using namespace reduction;

void max_cuda(const CudaCall& call) { run_reduction<Max>(call, plan_of(call)); }
void min_cuda(const CudaCall& call) { run_reduction<Min>(call, plan_of(call)); }

}  // namespace brrr::kernels
