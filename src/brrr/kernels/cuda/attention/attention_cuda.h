// Attention on a GPU in flash form: scores exist one tile at a time, in registers and shared memory. bf16 and
// f16 heads of whole 16-byte chunks up to 256 go to tensor cores (attention_mma_*.cu), everything else to plain arithmetic in
// f32 or f64 (attention_plain.cuh). Backward has one order of additions and no atomics.
#pragma once

#include "brrr/graph/cuda_call.h"
#include "brrr/kernels/calls/attention_rule.h"

namespace brrr::kernels {

void attention_cuda(const CudaCall& call);
void attention_backward_cuda(const CudaCall& call);
int64_t attention_backward_cuda_workspace(const CudaCall& call);

// A head's rows in memory, in elements.
struct HeadStrides {
  int64_t batch, head, row, col;
};

// Everything that a kernel asks about a call besides addresses.
struct AttentionShape {
  int batch, heads, kv_heads, queries, keys, head_dim, value_dim;
  bool causal;
  int window;  // larger than any distance where there is none
  float scale, soft_cap;
  double wide_scale, wide_soft_cap;
  const int64_t* lengths;  // [batch], or null
  int64_t length_stride;
  const int64_t* documents;  // [batch, seq], or null
  int64_t document_batch_stride, document_stride;
};

AttentionShape attention_shape(const CudaCall& call, int extra);

// Whether tensor cores take the call.
bool is_mma_attention(const CudaCall& call);
void attention_mma_cuda(const CudaCall& call);
// Workspace: part sums of dQ, then two sums per row, f32 [batch, heads, queries] each.
void attention_mma_backward_cuda(const CudaCall& call);

}  // namespace brrr::kernels
