// Which attention gradients the one-kernel form of Hopper takes, and the memory of its part sums of dQ: by shapes, without
// a device. attention_mma_fused_grad_cuda.cu has the kernel.
#pragma once

#include "brrr/graph/cuda_call.h"

namespace brrr::kernels::fused_grad {

inline constexpr int kDim = 64, kQueries = 64;  // of a head, and of a tile
// Steps of one head must not be too few for the GPU's SMs, nor part sums too large for its cache.
inline constexpr int kMinUnits = 48, kMaxQueries = 2048;

bool takes(const CudaCall& call);
int64_t workspace_bytes(const CudaCall& call);
// Blocks that are on the GPU at once: one per SM, each with whole (batch, kv head) units.
int64_t grid_blocks(int64_t units, const Chip& chip);

}  // namespace brrr::kernels::fused_grad
