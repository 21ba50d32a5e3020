// What reductions on the GPU fold, how their work is cut (reduce_split.h), and where results go; see reduce.cuh.
#pragma once

#include <limits>

#include "brrr/kernels/calls/kernel_layouts.h"
#include "brrr/kernels/cuda/device/rows.cuh"
#include "brrr/kernels/cuda/reduce/reduce_cuda.h"
#include "brrr/kernels/cuda/reduce/reduce_split.h"

namespace brrr::kernels::reduction {

// ---- What is folded. What does not compare has the same bits in i64 and u64.

struct Sum {
  static constexpr bool compares = false;
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
  static constexpr bool compares = false;
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
  static constexpr bool compares = true;
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
  static constexpr bool compares = true;
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
using Wide = std::conditional_t<std::integral<C>, C, double>;

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
  int64_t strip_groups;
};

inline Plan plan_of(const CudaCall& call) {
  const Operand& x = call.input(0);
  const Axes& axes = call.attrs.list("axes");
  const Cut cut = cut_of(call);
  return {.x = Elements(x),
          .y = Elements(call.output(0)),
          .kept = walk_of(pick_axes(*x.layout, axes, false)),
          .reduced = walk_of(pick_axes(*x.layout, axes, true)),
          .outputs = cut.outputs,
          .length = cut.length,
          .splits = cut.splits,
          .split_length = cut.split_length,
          .partials = call.workspace.data(),
          .divisor = 1,
          .by_columns = cut.by_columns,
          .by_strips = cut.by_strips,
          .strip_groups = cut.strip_groups};
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

}  // namespace brrr::kernels::reduction
