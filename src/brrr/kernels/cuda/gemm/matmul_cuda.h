// CUDA kernels of matmul and linear: products of kernels/cuda/gemm/gemm_cuda.h, and a kernel of our own for what cuBLASLt
// does not take (integers, no library).
#pragma once

#include "brrr/device/cuda/runtime.h"
#include "brrr/graph/cuda_call.h"
#include "brrr/kernels/cuda/gemm/gemm_cuda.h"

namespace brrr::kernels {

// An attribute `tf32` = true runs products of f32 operands on tensor cores, which read their upper 19 bits.
void matmul_cuda(const CudaCall& call);
void linear_cuda(const CudaCall& call);
int64_t matmul_cuda_workspace(const CudaCall& call);

// What the library does beside multiplying, with operands of the call; null: not that.
struct ProductExtras {
  GemmEpilogue epilogue = GemmEpilogue::none;
  const Operand* bias = nullptr;    // [n], added
  const Operand* addend = nullptr;  // rows like those of the result
  const Operand* aux = nullptr;     // what gelu is taken of, or was
  const Operand* sums = nullptr;    // [n] or [m], written
  const float* a_scale = nullptr;   // of 8-bit factors that the library takes as they lie: the
  const float* b_scale = nullptr;   // product is multiplied by both
  // More than linear has. The plain kernel knows nothing of it, so the library must take the product.
  bool is_epilogue() const { return addend || aux || sums || epilogue > GemmEpilogue::bias; }
};
// Inputs 0 and 1 are a and b, output 0 the product, perhaps with its rows along several axes.
void run_product_cuda(const CudaCall& call, const ProductExtras& extras);
int64_t product_cuda_workspace(const CudaCall& call, const ProductExtras& extras);
// Whether the library takes it with the operands as they lie. A call with a stream also asks the library of that device
// for an algorithm; without one the program is planned for a device that is not here, by the rules alone.
bool has_product_cuda(const CudaCall& call, const ProductExtras& extras);

// Any dtypes and strides. c[m, n] = a[m, k] b[k, n] (+ bias[n]) in the compute type of c, for each batch.
struct PlainProduct {
  Operand a, b, c;  // two axes each, and c's; batches are offsets
  const Operand* bias;
};
void run_plain_product(const CudaCall& call, const PlainProduct& product);

}  // namespace brrr::kernels
