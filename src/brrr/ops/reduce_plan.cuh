// What reductions on the GPU fold, how their work is cut, and where results go; see reduce.cuh.
#pragma once

#include <limits>

#include "brrr/ops/kernel_layouts.h"
#include "brrr/ops/reduce_cuda.h"
#include "brrr/ops/rows.cuh"

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
  bool by_strips;  // of whole chunks of columns, where the first is at 16 bytes
};

inline constexpr int64_t kFewOutputs = 4096;  // fewer cannot fill a GPU with a block each
inline constexpr int64_t kRowSplit = 8192;    // elements of a part of a row
inline constexpr int64_t kColumnSplit = 128;  // rows of a part of a column
inline constexpr int64_t kColumnThreads = 1 << 17;
inline constexpr int64_t kMaxSplits = 4096;
// Blocks of strips: four for each of 132 multiprocessors, all at once; and the rows that a block has at least.
inline constexpr int64_t kStripBlocks = 4 * 132;
inline constexpr int64_t kStripSplit = 64;

inline int64_t inner_stride(const Walk& walk) {
  return walk.rank == 0 ? INT64_MAX : walk.strides[walk.rank - 1];
}

// Columns side by side in rows of whole chunks, of a dtype that strips are written for. By shape alone, not by the
// address, since workspaces are asked for before there is one.
inline bool has_strips(const Plan& plan) {
  const int64_t bytes = bit_size(plan.x.dtype) / 8;
  return (plan.x.dtype == DType::f32 || plan.x.dtype == DType::bf16 ||
          plan.x.dtype == DType::f16) &&
         plan.kept.rank == 1 && plan.kept.strides[0] == 1 && plan.reduced.rank == 1 &&
         plan.outputs * bytes % 16 == 0 && plan.reduced.strides[0] * bytes % 16 == 0;
}
// Blocks that lie side by side along the columns, 32 chunks each.
inline int64_t strip_groups(const Plan& plan) {
  return (plan.outputs * bit_size(plan.x.dtype) / 8 / 16 + 31) / 32;
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
            .by_columns = false,
            .by_strips = false};
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
  if (plan.by_columns && has_strips(plan)) {
    plan.by_strips = true;
    plan.splits = std::clamp<int64_t>(
        std::min(kStripBlocks / strip_groups(plan), plan.length / kStripSplit), 1, kMaxSplits);
  }
  plan.split_length = (plan.length + plan.splits - 1) / plan.splits;
  plan.splits = std::max<int64_t>(1, (plan.length + plan.split_length - 1) /
                                         std::max<int64_t>(plan.split_length, 1));  // none is empty
  return plan;
}

// ---- Results.

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

}  // namespace brrr::reduction
