// Launches that host code refers to, in a build without CUDA: programs for a GPU are planned there, and not run.
#if !BRRR_HAS_CUDA

#include "brrr/base/error.h"
#include "brrr/kernels/cuda/elementwise/copy_cuda.h"
#include "brrr/kernels/cuda/gemm/fp8_cuda.h"
#include "brrr/kernels/cuda/gemm/matmul_cuda.h"

namespace brrr::kernels {
namespace {

[[noreturn]] void refuse(const CudaCall& call) {
  fail(call.op.name, ": this build has no CUDA; configure with -DBRRR_CUDA=ON, or use the cpu");
}

}  // namespace

void copy_elements_cuda(const CudaCall& call, const Operand&, const Operand&) { refuse(call); }
void run_plain_product(const CudaCall& call, const PlainProduct&) { refuse(call); }
void place_scales_cuda(const CudaCall& call, const float*, const float*, float*) { refuse(call); }
void scale_product_cuda(const CudaCall& call, const float*) { refuse(call); }

}  // namespace brrr::kernels

#endif
