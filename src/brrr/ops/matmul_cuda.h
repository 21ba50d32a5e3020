// CUDA kernels of matmul and linear: products of ops/gemm_cuda.h, and a kernel of our own for what cuBLASLt
// does not take (integers, no library).
#pragma once

#include "brrr/device/cuda/runtime.h"
#include "brrr/graph/op_def.h"

namespace brrr {

// An attribute `tf32` = true runs products of f32 operands on tensor cores, which read their upper 19 bits.
void matmul_cuda(const CudaCall& call);
void linear_cuda(const CudaCall& call);
int64_t matmul_cuda_workspace(const CudaCall& call);

// Any dtypes and strides. c[m, n] = a[m, k] b[k, n] (+ bias[n]) in the compute type of c, for each batch.
struct PlainProduct {
  Operand a, b, c;  // two axes each, and c's; batches are offsets
  const Operand* bias;
};
void run_plain_product(const CudaCall& call, const PlainProduct& product);

}  // namespace brrr
