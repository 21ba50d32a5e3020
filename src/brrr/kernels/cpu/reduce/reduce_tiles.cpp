#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/kernels/cpu/reduce/reduce_tiles.cpp"
#include "brrr/kernels/cpu/reduce/reduce_tiles.h"

#include <limits>

#include "brrr/kernels/scalar/wrap.h"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE {

struct Sum {
  template <typename T>
  static constexpr T identity() {
    return T(0);
  }
  template <typename T>
  static T of(T a, T b) {
    return add_wrapping(a, b);
  }
};
struct Prod {
  template <typename T>
  static constexpr T identity() {
    return T(1);
  }
  template <typename T>
  static T of(T a, T b) {
    return mul_wrapping(a, b);
  }
};
struct Max {  // NaN wins: it is taken up by b != b, and kept because nothing is greater than it
  template <typename T>
  static constexpr T identity() {
    if constexpr (std::integral<T>)
      return std::numeric_limits<T>::min();
    else
      return -std::numeric_limits<T>::infinity();
  }
  template <typename T>
  static T of(T a, T b) {
    return b > a || b != b ? b : a;
  }
};
struct Min {
  template <typename T>
  static constexpr T identity() {
    if constexpr (std::integral<T>)
      return std::numeric_limits<T>::max();
    else
      return std::numeric_limits<T>::infinity();
  }
  template <typename T>
  static T of(T a, T b) {
    return b < a || b != b ? b : a;
  }
};

template <typename T>
using Wide = std::conditional_t<std::integral<T>, T, double>;

template <typename Op, typename T>
void reduce_row(const void* values, int64_t count, void* wide) {
  const T* x = static_cast<const T*>(values);
  T lanes[kReduceLanes];
  for (T& lane : lanes) lane = Op::template identity<T>();
  int64_t i = 0;
  constexpr int64_t ahead = 1024, line = 64 / static_cast<int64_t>(sizeof(T));  // elements
  for (; i + kReduceLanes <= count; i += kReduceLanes) {
    for (int64_t next = ahead; next < ahead + kReduceLanes; next += line)
      hwy::Prefetch(x + i + next);
    for (int lane = 0; lane < kReduceLanes; ++lane) lanes[lane] = Op::of(lanes[lane], x[i + lane]);
  }
  for (int lane = 0; i < count; ++i, ++lane) lanes[lane] = Op::of(lanes[lane], x[i]);
  for (int half = kReduceLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] = Op::of(lanes[lane], lanes[lane + half]);
  }
  *static_cast<Wide<T>*>(wide) = static_cast<Wide<T>>(lanes[0]);
}

template <typename Op, typename T>
void start_lanes(void* lanes, int64_t columns) {
  for (int64_t i = 0; i < kReduceLanes * columns; ++i)
    static_cast<T*>(lanes)[i] = Op::template identity<T>();
}

template <typename Op, typename T>
void add_to_lane(void* lane, const void* values, int64_t columns) {
  T* HWY_RESTRICT sum = static_cast<T*>(lane);
  const T* HWY_RESTRICT x = static_cast<const T*>(values);
  for (int64_t i = 0; i < columns; ++i) sum[i] = Op::of(sum[i], x[i]);
}

// Lane by lane, a block of columns at a time: sums stay in registers until a lane has all its rows.
template <typename Op, typename T>
void fill_lanes(void* lanes, const void* values, int64_t stride, int64_t rows, int64_t columns) {
  constexpr int64_t kBlock = 64;
  const T* HWY_RESTRICT x = static_cast<const T*>(values);
  T* HWY_RESTRICT sums = static_cast<T*>(lanes);
  for (int64_t lane = 0; lane < kReduceLanes; ++lane) {
    int64_t column = 0;
    for (; column + kBlock <= columns; column += kBlock) {
      T block[kBlock];
      for (T& sum : block) sum = Op::template identity<T>();
      for (int64_t row = lane; row < rows; row += kReduceLanes) {
        for (int64_t i = 0; i < kBlock; ++i)
          block[i] = Op::of(block[i], x[row * stride + column + i]);
      }
      for (int64_t i = 0; i < kBlock; ++i) sums[lane * columns + column + i] = block[i];
    }
    for (; column < columns; ++column) {
      T sum = Op::template identity<T>();
      for (int64_t row = lane; row < rows; row += kReduceLanes)
        sum = Op::of(sum, x[row * stride + column]);
      sums[lane * columns + column] = sum;
    }
  }
}

template <typename Op, typename T>
void finish_lanes(void* lanes, int64_t columns, void* wide) {
  T* sums = static_cast<T*>(lanes);
  for (int64_t half = kReduceLanes / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half * columns; ++i)
      sums[i] = Op::of(sums[i], sums[i + half * columns]);
  }
  for (int64_t i = 0; i < columns; ++i)
    static_cast<Wide<T>*>(wide)[i] = static_cast<Wide<T>>(sums[i]);
}

template <typename Op, typename T>
void combine_wide(void* wide, const void* more, int64_t count) {
  Wide<T>* HWY_RESTRICT total = static_cast<Wide<T>*>(wide);
  const Wide<T>* HWY_RESTRICT x = static_cast<const Wide<T>*>(more);
  for (int64_t i = 0; i < count; ++i) total[i] = Op::of(total[i], x[i]);
}

template <typename Op>
struct KernelsOf {
  template <typename T>
  ReduceKernels operator()() const {
    return {&reduce_row<Op, T>,   &start_lanes<Op, T>, &add_to_lane<Op, T>,
            &finish_lanes<Op, T>, &fill_lanes<Op, T>,  &combine_wide<Op, T>};
  }
};

ReduceKernels reduce_table(Reduction reduction, ComputeType type) {
  switch (reduction) {
    case Reduction::sum: return visit_wrapping(type, KernelsOf<Sum>());
    case Reduction::max: return visit_compute(type, KernelsOf<Max>());
    case Reduction::min: return visit_compute(type, KernelsOf<Min>());
    case Reduction::prod: return visit_wrapping(type, KernelsOf<Prod>());
  }
  return {};
}

}  // namespace brrr::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr::kernels {
HWY_EXPORT(reduce_table);
ReduceKernels find_reduce_kernels(Reduction reduction, ComputeType type) {
  return HWY_DYNAMIC_DISPATCH(reduce_table)(reduction, type);
}
}  // namespace brrr::kernels
#endif
