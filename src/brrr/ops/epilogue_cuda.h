// CUDA kernels of ops/epilogue.h: one call of cuBLASLt each.
#pragma once

#include <optional>

#include "brrr/graph/cuda_call.h"

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
// Whether the matrix library multiplies the operands with this epilogue, without copies of them: by rules over dtypes,
// strides and the chip. Where the device is here its library is asked for an algorithm as well.
bool has_epilogue_cuda(const EpilogueQuestion& question, const Chip& chip,
                       std::optional<int> device);

}  // namespace brrr
