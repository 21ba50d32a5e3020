// Scratch of CUDA kernels from shapes, dtypes and the chip: compiled in every build, so that a program is planned where
// there is no GPU with the bytes that it takes on one.
#include <algorithm>

#include "brrr/kernels/cuda/attention/attention_cuda.h"
#include "brrr/kernels/cuda/attention/attention_fused_grad.h"
#include "brrr/kernels/cuda/index/index_cuda.h"
#include "brrr/kernels/cuda/index/sort_memory.h"
#include "brrr/kernels/cuda/rows/norm_backward_split.h"
#include "brrr/kernels/cuda/rows/norm_cuda.h"

namespace brrr::kernels {

// ---- Attention.

bool fused_grad::takes(const CudaCall& call) {
  const Operand &q = call.input(0), &k = call.input(1);
  return call.chip.major == 9 && (q.dtype == DType::bf16 || q.dtype == DType::f16) &&
         q.shape()[3] == kDim && call.attrs.number("soft_cap") == 0 &&
         q.shape()[0] * k.shape()[1] >= kMinUnits && q.shape()[2] <= kMaxQueries;
}

int64_t fused_grad::grid_blocks(int64_t units, const Chip& chip) {
  return std::min<int64_t>(units, chip.sm_count);
}

int64_t fused_grad::workspace_bytes(const CudaCall& call) {
  const Shape &q = call.input(0).shape(), &k = call.input(1).shape();
  const int64_t blocks = grid_blocks(q[0] * k[1], call.chip), group = q[1] / k[1];
  return blocks * group * ((q[2] + kQueries - 1) / kQueries) * (kQueries * kDim) * 4;
}

int64_t attention_backward_cuda_workspace(const CudaCall& call) {
  // Two sums per row in f32, or one in f64; whether tensor cores take the call also depends on addresses.
  const int64_t row_bytes = call.input(4).count() * 8;
  return fused_grad::takes(call) ? fused_grad::workspace_bytes(call) + row_bytes : row_bytes;
}

// ---- Norms. Sums of the weight and bias gradients of each block.

int64_t norm_backward_cuda_workspace(const CudaCall& call) {
  const Operand& x = call.input(0);
  const int64_t cols = x.shape().back(), rows = cols == 0 ? 0 : x.count() / cols;
  const int64_t blocks = norm_backward_blocks(rows, 1, kMostBlocksPerSm, call.chip.sm_count);
  return blocks * 2 * cols * (x.dtype == DType::f64 ? 8 : 4);
}

// ---- Indices and sorts.

bool scatter_adds_in_place(const Operand& output) {
  return is_natural(output.dtype) && output.layout->is_contiguous();
}

int64_t scatter_add_cuda_workspace(const CudaCall& call) {
  const Operand& output = call.output(0);
  if (scatter_adds_in_place(output)) return 0;
  return storage_bytes(natural_dtype(compute_type(output.dtype)), output.count());
}

int64_t embedding_grad_cuda_workspace(const CudaCall& call) {
  const int64_t count = call.input(1).count();
  const Shape& table = call.output(0).shape();
  return count == 0 ? 0 : EmbeddingGradMemory(count, table[0], table[1]).total();
}

int64_t sort_cuda_workspace(const CudaCall& call) {
  const int64_t count = call.input(0).count();
  return count == 0 || call.output(0).count() == 0 ? 0 : SortMemory(count).total();
}

int64_t permutation_cuda_workspace(const CudaCall& call) {
  const int64_t count = call.output(0).count();
  return count == 0 ? 0 : sort_buffer_bytes(count, 8) + sort_scratch_bytes(count, 8);
}

}  // namespace brrr::kernels
