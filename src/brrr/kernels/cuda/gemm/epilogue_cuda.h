// CUDA kernels of ops/matmul/epilogue.h: one call of cuBLASLt each.
#pragma once

#include <optional>

#include "brrr/graph/cuda_call.h"

namespace brrr::kernels {

// What is done to a @ b inside its kernel.
enum class MatmulEpilogue : uint8_t { gelu, gelu_backward, column_sums, add };

void matmul_gelu_cuda(const CudaCall& call);
int64_t matmul_gelu_cuda_workspace(const CudaCall& call);
void matmul_gelu_backward_cuda(const CudaCall& call);
int64_t matmul_gelu_backward_cuda_workspace(const CudaCall& call);
void matmul_sums_cuda(const CudaCall& call);
int64_t matmul_sums_cuda_workspace(const CudaCall& call);
void matmul_add_cuda(const CudaCall& call);
int64_t matmul_add_cuda_workspace(const CudaCall& call);

// Operands that are not there yet.
struct EpilogueQuestion {
  const OpDef& op;
  MatmulEpilogue epilogue;
  const Attrs& attrs;
  std::span<const Layout> input_layouts, output_layouts;
  std::span<const DType> input_dtypes, output_dtypes;
};
// Whether the matrix library multiplies the operands with this epilogue, without copies of them: by rules over dtypes,
// strides and the chip. Where the device is here its library is asked for an algorithm as well.
bool has_epilogue_cuda(const EpilogueQuestion& question, const Chip& chip,
                       std::optional<int> device);

}  // namespace brrr::kernels
