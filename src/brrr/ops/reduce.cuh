// Reductions on the GPU. A result is reduced in `splits` parts, cut by shape alone, so its bits do not depend
// on the machine; parts are combined in order. Where the reduced axis is the inner one, threads of a block
// walk a row together; where the kept axis is, each thread has a column of its own and neighbours read
// neighbouring elements.
//
// f32 is added in f32 for 16 elements at a time and those sums in f64: rounding stays that of short sums.
#pragma once

#include <limits>

#include "brrr/ops/elements.cuh"
#include "brrr/ops/kernel_layouts.h"
#include "brrr/ops/reduce_cuda.h"

namespace brrr::reduction {

// ---- What is folded.

struct Sum {
  template <typename T>
  static __device__ T identity() {
    return T(0);
  }
  template <typename T>
  static __device__ T of(T a, T b) {
    return add_wrapping(a, b);
  }
};
struct Prod {
  template <typename T>
  static __device__ T identity() {
    return T(1);
  }
  template <typename T>
  static __device__ T of(T a, T b) {
    return mul_wrapping(a, b);
  }
};
struct Max {  // NaN wins, as on the cpu
  template <typename T>
  static __device__ T identity() {
    if constexpr (std::integral<T>)
      return std::numeric_limits<T>::min();
    else
      return -std::numeric_limits<T>::infinity();
  }
  template <typename T>
  static __device__ T of(T a, T b) {
    return b > a || b != b ? b : a;
  }
};
struct Min {
  template <typename T>
  static __device__ T identity() {
    if constexpr (std::integral<T>)
      return std::numeric_limits<T>::max();
    else
      return std::numeric_limits<T>::infinity();
  }
  template <typename T>
  static __device__ T of(T a, T b) {
    return b < a || b != b ? b : a;
  }
};

template <typename C>
using Wide = std::conditional_t<std::is_same_v<C, int64_t>, int64_t, double>;

// How an element comes into the compute type: `T` where it is known, any dtype for void.
template <typename T, typename C>
__device__ C fetch(const Elements& x, int64_t i) {
  if constexpr (std::is_void_v<T>)
    return x.load<C>(i);
  else
    return convert_fast<C>(reinterpret_cast<const T*>(x.base)[i]);
}

// ---- How the work is cut.

struct Plan {
  Elements x, y;
  Walk kept, reduced;
  int64_t outputs, length;
  int64_t splits, split_length;
  void* partials;  // [splits][outputs] wide values; unused for one split
  double divisor;  // mean: length, else 1
  bool by_columns;
};

inline constexpr int64_t kFewOutputs = 4096;  // fewer cannot fill a GPU with a block each
inline constexpr int64_t kRowSplit = 8192;    // elements of a part of a row
inline constexpr int64_t kColumnSplit = 128;  // rows of a part of a column
inline constexpr int64_t kColumnThreads = 1 << 17;
inline constexpr int64_t kMaxSplits = 4096;

inline int64_t inner_stride(const Walk& walk) {
  return walk.rank == 0 ? INT64_MAX : walk.strides[walk.rank - 1];
}

inline Plan plan_of(const CudaCall& call) {
  const Operand& x = call.input(0);
  const Axes& axes = call.attrs.list("axes");
  const Layout kept = pick_axes(*x.layout, axes, false), reduced = pick_axes(*x.layout, axes, true);
  Plan plan{.x = Elements(x),
            .y = Elements(call.output(0)),
            .kept = walk_of(kept),
            .reduced = walk_of(reduced),
            .outputs = numel(kept.shape),
            .length = numel(reduced.shape),
            .splits = 1,
            .split_length = 0,
            .partials = call.workspace.data(),
            .divisor = 1,
            .by_columns = false};
  plan.by_columns =
      plan.outputs > 1 && plan.length > 1 && inner_stride(plan.kept) < inner_stride(plan.reduced);
  // Short rows of many outputs: a thread each, as if they were columns.
  if (plan.length <= 16 && plan.outputs > kFewOutputs) plan.by_columns = true;
  const int64_t part = plan.by_columns ? kColumnSplit : kRowSplit;
  const int64_t wanted = plan.by_columns ? kColumnThreads / std::max<int64_t>(1, plan.outputs)
                         : plan.outputs < kFewOutputs ? kMaxSplits
                                                      : 1;
  plan.splits =
      std::clamp<int64_t>(std::min(wanted, (plan.length + part - 1) / part), 1, kMaxSplits);
  plan.split_length = (plan.length + plan.splits - 1) / plan.splits;
  return plan;
}

// ---- Kernels.

template <typename Op, typename W>
__device__ void finish(const Plan& plan, int64_t split, int64_t output, W value) {
  if (plan.splits > 1) {
    static_cast<W*>(plan.partials)[split * plan.outputs + output] = value;
  } else if constexpr (std::is_same_v<W, double>) {
    plan.y.store<double>(output, plan.divisor == 1 ? value : value / plan.divisor);
  } else {
    plan.y.store<W>(output, value);
  }
}

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

template <typename Op, typename W>
struct CombineParts {
  Plan plan;
  __device__ void operator()(int64_t output) const {
    const W* part = static_cast<const W*>(plan.partials) + output;
    W total = part[0];
#pragma unroll 16  // loads under way at once; the order of additions stays
    for (int64_t split = 1; split < plan.splits; ++split)
      total = Op::of(total, part[split * plan.outputs]);
    Plan whole = plan;
    whole.splits = 1;
    finish<Op>(whole, 0, output, total);
  }
};

template <typename Op, typename T, typename C>
void run_as(const CudaCall& call, const Plan& plan) {
  const int64_t units = plan.outputs * plan.splits;
  if (plan.by_columns) {
    launch_for_each(call, units, ReduceColumn<Op, T, C>{plan});
  } else if (plan.split_length <= 1024) {
    reduce_short_rows_kernel<Op, T, C>
        <<<blocks_for(units, kBlockThreads / 32), kBlockThreads, 0, call.stream>>>(plan);
  } else {
    reduce_rows_kernel<Op, T, C><<<blocks_for(units, 1), kBlockThreads, 0, call.stream>>>(plan);
  }
  cuda::check_launch(call.op.name);
  if (plan.splits > 1) launch_for_each(call, plan.outputs, CombineParts<Op, Wide<C>>{plan});
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
  run_as<Op, void, int64_t>(call, plan);
}

}  // namespace brrr::reduction
