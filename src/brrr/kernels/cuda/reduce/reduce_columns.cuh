// Reductions down columns that lie side by side in whole chunks: 16 bytes a load, as a copy would read them.
#pragma once

#include "brrr/kernels/cuda/reduce/reduce_plan.cuh"

namespace brrr::kernels::reduction {

// A block for each (32 chunks of columns, split): a lane has a chunk, the warps take turns along the rows. 8 rows are
// folded in the compute type, those in the wide one; then the warps in order.
template <typename Op, typename T>
__global__ void __launch_bounds__(kBlockThreads, 4) reduce_strips_kernel(Plan plan) {
  constexpr int kPack = kChunk<T>, kWarps = kBlockThreads / 32, kTogether = 8;
  __shared__ double of_warps[kWarps][32 * kPack];
  const int lane = static_cast<int>(threadIdx.x) % 32, y = static_cast<int>(threadIdx.x) / 32;
  const int64_t groups = gridDim.x / plan.splits, group = blockIdx.x % groups,
                split = blockIdx.x / groups;
  const int64_t end = min(plan.length, (split + 1) * plan.split_length);
  const int64_t first_column = group * 32 * kPack;
  double totals[kPack];
#pragma unroll
  for (double& total : totals) total = Op::template identity<double>();
  if (first_column + lane * kPack < plan.outputs) {
    const T* const from = reinterpret_cast<const T*>(plan.x.base) + first_column + lane * kPack;
    const int64_t stride = plan.reduced.strides[0];
    // Rows row, row + kWarps, ...; `whole`: all of them are there.
    const auto fold_rows = [&](int64_t row, auto whole) {
      uint4 words[kTogether];
#pragma unroll
      for (int k = 0; k < kTogether; ++k)
        if (whole.value || row + k * kWarps < end)
          words[k] = *reinterpret_cast<const uint4*>(from + (row + k * kWarps) * stride);
      float part[kPack];
#pragma unroll
      for (float& value : part) value = Op::template identity<float>();
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        if (!whole.value && row + k * kWarps >= end) continue;
        float values[kPack];
        unpack_chunk<T>(words[k], values);
#pragma unroll
        for (int i = 0; i < kPack; ++i) part[i] = Op::of(part[i], values[i]);
      }
#pragma unroll
      for (int i = 0; i < kPack; ++i) totals[i] = Op::of(totals[i], static_cast<double>(part[i]));
    };
    int64_t row = split * plan.split_length + y;
    for (; row + (kTogether - 1) * kWarps < end; row += kTogether * kWarps)
      fold_rows(row, std::true_type{});
    if (row < end) fold_rows(row, std::false_type{});
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i) of_warps[y][lane * kPack + i] = totals[i];
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < 32 * kPack; c += kBlockThreads) {
    if (first_column + c >= plan.outputs) return;
    double total = of_warps[0][c];
#pragma unroll
    for (int warp = 1; warp < kWarps; ++warp) total = Op::of(total, of_warps[warp][c]);
    finish<Op>(plan, split, first_column + c, total);
  }
}

// False where columns are not such.
template <typename Op, typename T>
bool run_strips(const CudaCall& call, const Plan& plan) {
  if (!plan.by_strips || reinterpret_cast<uintptr_t>(plan.x.base) % 16 != 0) return false;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, bf16> || std::is_same_v<T, f16>) {
    reduce_strips_kernel<Op, T>
        <<<static_cast<unsigned>(plan.strip_groups * plan.splits), kBlockThreads, 0, call.stream>>>(
            plan);
    return true;
  }
  return false;
}

}  // namespace brrr::kernels::reduction
