// Sums, means and products on the GPU.
#include "brrr/kernels/cuda/reduce/reduce.cuh"

namespace brrr::kernels {

using namespace reduction;

void sum_cuda(const CudaCall& call) { run_reduction<Sum>(call, plan_of(call)); }
void prod_cuda(const CudaCall& call) { run_reduction<Prod>(call, plan_of(call)); }
void mean_cuda(const CudaCall& call) {
  Plan plan = plan_of(call);
  plan.divisor = static_cast<double>(plan.length);
  run_reduction<Sum>(call, plan);
}

}  // namespace brrr::kernels
