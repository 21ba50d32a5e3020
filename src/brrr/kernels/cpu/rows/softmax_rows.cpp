#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/kernels/cpu/rows/softmax_rows.cpp"
#include "brrr/kernels/cpu/rows/softmax_rows.h"

#include <algorithm>
#include <cmath>

#include "hwy/foreach_target.h"
// after foreach_target.h
#include "brrr/kernels/cpu/rows/row_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE {

template <typename T>
void softmax_row(const void* input, void* scratch, void* output, int64_t count, RowStore store) {
  const T* x = static_cast<const T*>(input);
  T* work = static_cast<T*>(scratch);
  T largest = -std::numeric_limits<T>::infinity();
  for_each_tile(count, [&](int64_t begin, int64_t end) HWY_ATTR {
    largest = math::at_least(tile_max(x, begin, end), largest);
  });
  double total = 0;
  for_each_tile(count, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) work[i] = math::exp_below(x[i] - largest);
    total += static_cast<double>(
        tile_sum<T>(begin, end, [work](int64_t i) HWY_ATTR { return work[i]; }));
  });
  const T scale = static_cast<T>(1 / total);
  T* y = static_cast<T*>(output);
  if (work == y) {
    for (int64_t i = 0; i < count; ++i) y[i] *= scale;
  } else {
    write_row(y, count, store, [work, scale](int64_t i) HWY_ATTR { return work[i] * scale; });
  }
}

// Sum of exp(x - shift), and the shift: the largest element so far, or 0 while that is not finite.
struct ShiftedTotal {
  double shift, total;
};

// Takes in one tile. The sum so far moves to the new shift; with ordinary numbers that is rare.
template <typename T>
HWY_INLINE void add_exponentials(const T* x, int64_t count, double& largest, ShiftedTotal& sum) {
  const auto tile_largest = static_cast<double>(tile_max(x, 0, count));
  if (tile_largest > largest) {
    largest = tile_largest;
    const double shift = std::isfinite(largest) ? largest : 0;
    if (sum.total != 0) sum.total *= std::exp(sum.shift - shift);
    sum.shift = shift;
  }
  const T shift = static_cast<T>(sum.shift);
  sum.total += static_cast<double>(tile_sum<T>(
      0, count, [x, shift](int64_t i) HWY_ATTR { return math::exp_below(x[i] - shift); }));
}

template <typename T>
void log_softmax_row(const void* input, void* output, int64_t count, RowStore store) {
  const T* x = static_cast<const T*>(input);
  double largest = -std::numeric_limits<double>::infinity();
  ShiftedTotal sum{0, 0};
  for_each_tile(count, [&](int64_t begin, int64_t end)
                           HWY_ATTR { add_exponentials(x + begin, end - begin, largest, sum); });
  // x - max is NaN somewhere in a row whose largest element is infinite, and with it all of the row.
  const T shift = static_cast<T>(sum.shift);
  const T log_total = std::isfinite(largest) ? static_cast<T>(std::log(sum.total))
                                             : std::numeric_limits<T>::quiet_NaN();
  write_row(static_cast<T*>(output), count, store,
            [=](int64_t i) HWY_ATTR { return (x[i] - shift) - log_total; });
}

template <typename T>
void softmax_backward_row(const void* result, const void* gradient, void* output, int64_t count,
                          RowStore store) {
  const T *y = static_cast<const T*>(result), *dy = static_cast<const T*>(gradient);
  const T along =
      static_cast<T>(row_sum<T>(count, [y, dy](int64_t i) HWY_ATTR { return dy[i] * y[i]; }));
  write_row(static_cast<T*>(output), count, store,
            [=](int64_t i) HWY_ATTR { return y[i] * (dy[i] - along); });
}

template <typename T>
void log_softmax_backward_row(const void* result, const void* gradient, void* output, int64_t count,
                              RowStore store) {
  const T *y = static_cast<const T*>(result), *dy = static_cast<const T*>(gradient);
  const T total = static_cast<T>(row_sum<T>(count, [dy](int64_t i) HWY_ATTR { return dy[i]; }));
  write_row(static_cast<T*>(output), count, store,
            [=](int64_t i) HWY_ATTR { return dy[i] - math::exp(y[i]) * total; });
}

template <typename T>
HWY_INLINE T capped(T x, T cap) {
  return cap * math::tanh(x / cap);
}

template <typename T>
LogitTotals cross_entropy_row(const CrossEntropyForward& row) {
  const T* x = static_cast<const T*>(row.logits);
  const T cap = static_cast<T>(row.soft_cap);
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  ShiftedTotal exponentials{0, 0};
  for_each_tile(row.count, [&](int64_t begin, int64_t end) HWY_ATTR {
    alignas(64) T buffer[kTileElements];
    const T* tile = x + begin;
    if (cap != 0) {
      for (int64_t i = 0; i < end - begin; ++i) buffer[i] = capped(tile[i], cap);
      tile = buffer;
    }
    add_exponentials(tile, end - begin, largest, exponentials);
    if (row.wants_sum) {
      sum += static_cast<double>(
          tile_sum<T>(0, end - begin, [tile](int64_t i) HWY_ATTR { return tile[i]; }));
    }
  });
  const T target = x[row.target];
  return {std::log(exponentials.total) + exponentials.shift, sum,
          static_cast<double>(cap != 0 ? capped(target, cap) : target)};
}

// The gradient may lie where the logits are: a tile is made aside and then put there, and the target's
// logit is read before all.
template <typename T, typename Value>
HWY_INLINE void write_gradient(const CrossEntropyBackward& row, const Value& value) {
  const T at_target = value(row.target, static_cast<T>(row.hit));
  alignas(64) T tile[kTileElements];
  for_each_tile(row.count, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) tile[i - begin] = value(i, T(0));
    if (row.target >= begin && row.target < end) tile[row.target - begin] = at_target;
    T* to = static_cast<T*>(row.gradient) + begin;
    if (row.store == RowStore::cached) {
      std::copy_n(tile, end - begin, to);
    } else {
      stream_copy(to, tile, (end - begin) * static_cast<int64_t>(sizeof(T)));
    }
  });
}

template <typename T>
void cross_entropy_backward_row(const CrossEntropyBackward& row) {
  const T* x = static_cast<const T*>(row.logits);
  const T cap = static_cast<T>(row.soft_cap), total = static_cast<T>(row.logsumexp),
          probability = static_cast<T>(row.probability), share = static_cast<T>(row.share);
  if (cap == 0) {
    write_gradient<T>(row, [=](int64_t i, T hit) HWY_ATTR {
      return probability * math::exp(x[i] - total) - share - hit;
    });
  } else {
    write_gradient<T>(row, [=](int64_t i, T hit) HWY_ATTR {
      const T t = math::tanh(x[i] / cap);
      return (probability * math::exp(cap * t - total) - share - hit) * (T(1) - t * t);
    });
  }
}

SoftmaxRows softmax_table(ComputeType type) {
  if (type == ComputeType::f64) {
    return {&softmax_row<double>, &log_softmax_row<double>, &softmax_backward_row<double>,
            &log_softmax_backward_row<double>};
  }
  return {&softmax_row<float>, &log_softmax_row<float>, &softmax_backward_row<float>,
          &log_softmax_backward_row<float>};
}

CrossEntropyRows cross_entropy_table(ComputeType type) {
  if (type == ComputeType::f64)
    return {&cross_entropy_row<double>, &cross_entropy_backward_row<double>};
  return {&cross_entropy_row<float>, &cross_entropy_backward_row<float>};
}

}  // namespace brrr::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr::kernels {
HWY_EXPORT(softmax_table);
HWY_EXPORT(cross_entropy_table);
SoftmaxRows find_softmax_rows(ComputeType type) {
  return HWY_DYNAMIC_DISPATCH(softmax_table)(type);
}
CrossEntropyRows find_cross_entropy_rows(ComputeType type) {
  return HWY_DYNAMIC_DISPATCH(cross_entropy_table)(type);
}
}  // namespace brrr::kernels
#endif
