// CUDA kernels of ops/epilogue.h: one call of cuBLASLt each.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr {

void matmul_gelu_cuda(const CudaCall& call);
void matmul_gelu_backward_cuda(const CudaCall& call);
void matmul_sums_cuda(const CudaCall& call);
void matmul_add_cuda(const CudaCall& call);
int64_t epilogue_cuda_workspace(const CudaCall& call);

// Operands that are not there yet.
struct EpilogueQuestion {
  const OpDef& op;
  const Attrs& attrs;
  std::span<const Layout> input_layouts, output_layouts;
  std::span<const DType> input_dtypes, output_dtypes;
};
// Whether the library of this GPU has the product without copies of its operands. Where there is no such GPU
// programs are planned, not run, and the answer is yes.
bool has_epilogue_cuda(const EpilogueQuestion& question, int device);

}  // namespace brrr
