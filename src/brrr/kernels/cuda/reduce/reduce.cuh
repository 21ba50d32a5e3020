// Reductions on the GPU. A result is reduced in `splits` parts, cut by shape alone, so its bits do not depend
// on the machine; parts are combined in order. Where the reduced axis is the inner one, threads of a block
// walk a row together; where the kept axis is, each thread has a chunk of columns (reduce_columns.cuh) or one
// column of its own, and neighbours read neighbouring elements.
//
// f32 is added in f32 for 16 elements at a time, 8 in strips, and those sums in f64: rounding stays that of short
// sums.
#pragma once

#include "brrr/kernels/cuda/reduce/reduce_columns.cuh"

namespace brrr::kernels::reduction {

// Folds elements first, first + step, ... below `end` in order, 16 to a part. `Together` loads are on their way
// before the first is needed.
template <typename Op, typename C, int Together, typename Fetch>
__device__ Wide<C> fold_parts(int64_t first, int64_t end, int64_t step, const Fetch& fetch) {
  constexpr int kPart = 16;
  Wide<C> total = Op::template identity<Wide<C>>();
  int64_t i = first;
  for (; i + (kPart - 1) * step < end; i += kPart * step) {
    C part = Op::template identity<C>();
#pragma unroll 1
    for (int k = 0; k < kPart; k += Together) {
      C values[Together];
#pragma unroll
      for (int j = 0; j < Together; ++j) values[j] = fetch(i + (k + j) * step);
#pragma unroll
      for (int j = 0; j < Together; ++j) part = Op::of(part, values[j]);
    }
    total = Op::of(total, static_cast<Wide<C>>(part));
  }
  C part = Op::template identity<C>();
  for (; i < end; i += step) part = Op::of(part, fetch(i));
  return Op::of(total, static_cast<Wide<C>>(part));
}

// Of one output. Elements at equal distances are the case that must be fast. Positions by division, and dtypes that
// are looked up for each element, are many instructions: with all 16 loads of a part written out they would be most
// of the machine code, and minutes of the compiler's time.
template <typename Op, typename T, typename C>
__device__ Wide<C> fold_strided(const Plan& plan, int64_t start, int64_t first, int64_t end,
                                int64_t step) {
  if constexpr (!std::is_void_v<T>) {
    if (plan.reduced.rank == 1) {
      const int64_t stride = plan.reduced.strides[0];
      return fold_parts<Op, C, 16>(
          first, end, step, [&](int64_t i) { return fetch<T, C>(plan.x, start + i * stride); });
    }
  }
  return fold_parts<Op, C, 4>(first, end, step, [&](int64_t i) {
    return fetch<T, C>(plan.x, start + plan.reduced.position(i));
  });
}

template <typename Op, typename W>
__device__ W fold_warp(W value) {
  for (int distance = 16; distance > 0; distance /= 2)
    value = Op::of(value, __shfl_down_sync(0xffffffffu, value, distance));
  return value;
}

// A block for each (output, split).
template <typename Op, typename T, typename C>
__global__ void __launch_bounds__(kBlockThreads) reduce_rows_kernel(Plan plan) {
  using W = Wide<C>;
  __shared__ W parts[kBlockThreads / 32];
  const int64_t units = plan.outputs * plan.splits;
  for (int64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const int64_t output = unit / plan.splits, split = unit % plan.splits;
    const int64_t begin = split * plan.split_length,
                  end = min(plan.length, begin + plan.split_length);
    W value = fold_strided<Op, T, C>(plan, plan.kept.position(output), begin + threadIdx.x, end,
                                     kBlockThreads);
    value = fold_warp<Op>(value);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int warp = 1; warp < kBlockThreads / 32; ++warp) value = Op::of(value, parts[warp]);
      finish<Op>(plan, split, output, value);
    }
    __syncthreads();  // parts are written again
  }
}

// A warp for each (output, split): rows too short for a block.
template <typename Op, typename T, typename C>
__global__ void __launch_bounds__(kBlockThreads) reduce_short_rows_kernel(Plan plan) {
  const int64_t units = plan.outputs * plan.splits;
  const int64_t step = static_cast<int64_t>(gridDim.x) * (kBlockThreads / 32);
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * (kBlockThreads / 32) + threadIdx.x / 32;
       unit < units; unit += step) {
    const int64_t output = unit / plan.splits, split = unit % plan.splits;
    const int64_t begin = split * plan.split_length,
                  end = min(plan.length, begin + plan.split_length);
    const auto value = fold_warp<Op>(fold_strided<Op, T, C>(plan, plan.kept.position(output),
                                                            begin + threadIdx.x % 32, end, 32));
    if (threadIdx.x % 32 == 0) finish<Op>(plan, split, output, value);
  }
}

// A thread for each (output, split).
template <typename Op, typename T, typename C>
struct ReduceColumn {
  Plan plan;
  __device__ void operator()(int64_t unit) const {
    const int64_t output = unit % plan.outputs, split = unit / plan.outputs;
    const int64_t begin = split * plan.split_length,
                  end = min(plan.length, begin + plan.split_length);
    finish<Op>(plan, split, output,
               fold_strided<Op, T, C>(plan, plan.kept.position(output), begin, end, 1));
  }
};

// A block has 32 outputs; each of its warps folds a share of the splits in order, then the shares in order.
inline constexpr int kShares = 32;
template <typename Op, typename W>
__global__ void __launch_bounds__(32 * kShares) combine_parts_kernel(Plan plan) {
  __shared__ W of_shares[kShares][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, y = static_cast<int>(threadIdx.x) / 32;
  const int64_t output = static_cast<int64_t>(blockIdx.x) * 32 + lane;
  const int64_t share = (plan.splits + kShares - 1) / kShares,
                end = min(plan.splits, (y + 1) * share);
  W total = Op::template identity<W>();
  if (output < plan.outputs) {
    const W* const parts = static_cast<const W*>(plan.partials) + output;
#pragma unroll 8  // loads under way at once; the order of additions stays
    for (int64_t split = y * share; split < end; ++split)
      total = Op::of(total, parts[split * plan.outputs]);
  }
  of_shares[y][lane] = total;
  __syncthreads();
  if (y > 0 || output >= plan.outputs) return;
  for (int s = 1; s < kShares; ++s) total = Op::of(total, of_shares[s][lane]);
  plan.splits = 1;
  finish<Op>(plan, 0, output, total);
}

template <typename Op, typename T, typename C>
void run_units(const CudaCall& call, const Plan& plan) {
  const int64_t units = plan.outputs * plan.splits;
  if (plan.by_columns) {
    launch_for_each(call, units, ReduceColumn<Op, T, C>{plan});
  } else if (plan.split_length <= 1024) {
    reduce_short_rows_kernel<Op, T, C>
        <<<blocks_for(units, kBlockThreads / 32), kBlockThreads, 0, call.stream>>>(plan);
  } else {
    reduce_rows_kernel<Op, T, C><<<blocks_for(units, 1), kBlockThreads, 0, call.stream>>>(plan);
  }
}

template <typename Op, typename T, typename C>
void run_as(const CudaCall& call, const Plan& plan) {
  if (!run_strips<Op, T>(call, plan)) run_units<Op, T, C>(call, plan);
  cuda::check_launch(call.op.name);
  if (plan.splits > 1) {
    combine_parts_kernel<Op, Wide<C>>
        <<<static_cast<unsigned>((plan.outputs + 31) / 32), 32 * kShares, 0, call.stream>>>(plan);
    cuda::check_launch(call.op.name);
  }
}

template <typename Op>
void run_reduction(const CudaCall& call, const Plan& plan) {
  if (plan.outputs == 0) return;
  switch (plan.x.dtype) {
    case DType::f32: return run_as<Op, float, float>(call, plan);
    case DType::bf16: return run_as<Op, bf16, float>(call, plan);
    case DType::f16: return run_as<Op, f16, float>(call, plan);
    case DType::f64: return run_as<Op, double, double>(call, plan);
    default: break;
  }
  if (compute_type(plan.x.dtype) == ComputeType::f32) return run_as<Op, void, float>(call, plan);
  if constexpr (Op::compares) {
    if (plan.x.dtype == DType::u64) return run_as<Op, void, uint64_t>(call, plan);
  }
  run_as<Op, void, int64_t>(call, plan);
}

}  // namespace brrr::kernels::reduction
