// What generated reductions share: folding the values of the threads of a warp or a block into one, in an
// order that depends on nothing but the size of the block.
#pragma once

#include "brrr/kernels/scalar/binary_functors.h"

namespace brrr::device {

template <typename Fold, typename T>
__device__ __forceinline__ T fold_warp(T value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value = Fold::of(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}

// Of all threads of a block; thread 0 has the result. Every thread must call it.
template <typename Fold, int kThreads, typename T>
__device__ __forceinline__ T fold_block(T value) {
  static_assert(kThreads % 32 == 0 && kThreads <= 1024);
  __shared__ T of_warps[kThreads / 32];
  value = fold_warp<Fold>(value);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < kThreads / 32; ++warp) value = Fold::of(value, of_warps[warp]);
  }
  return value;
}

}  // namespace brrr::device
