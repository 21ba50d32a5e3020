// Loops over one contiguous row that the row kernels are made of, compiled for each CPU target: a file
// includes this after hwy/foreach_target.h (the odd guard is Highway's, one inclusion a target).
//
// Sums have one order: tiles of kTileElements; inside a tile element i belongs to lane i % kRowLanes; lanes
// combine as a tree, tiles one after another in a double.
#if defined(BRRR_OPS_ROW_LOOPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef BRRR_OPS_ROW_LOOPS_INL_H
#undef BRRR_OPS_ROW_LOOPS_INL_H
#else
#define BRRR_OPS_ROW_LOOPS_INL_H
#endif

#include <algorithm>
#include <limits>

#include "brrr/base/scalar_math.h"
#include "brrr/graph/op_def.h"
#include "brrr/kernels/cpu/elementwise/stream_cpu.h"
#include "brrr/kernels/cpu/reduce/reduce_tiles.h"
#include "brrr/kernels/cpu/rows/row_store.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE {

inline constexpr int kRowLanes = kReduceLanes;

// Folds value(begin) ... value(end - 1), at most a tile, in lanes.
template <typename T, typename Step, typename Value>
HWY_INLINE T fold_tile(int64_t begin, int64_t end, T start, const Step& step, const Value& value) {
  T lanes[kRowLanes];
  for (T& lane : lanes) lane = start;
  int64_t i = begin;
  for (; i + kRowLanes <= end; i += kRowLanes) {
    for (int lane = 0; lane < kRowLanes; ++lane) lanes[lane] = step(lanes[lane], value(i + lane));
  }
  for (int lane = 0; i < end; ++i, ++lane) lanes[lane] = step(lanes[lane], value(i));
  for (int half = kRowLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] = step(lanes[lane], lanes[lane + half]);
  }
  return lanes[0];
}

template <typename T, typename Value>
HWY_INLINE T tile_sum(int64_t begin, int64_t end, const Value& value) {
  return fold_tile(
      begin, end, T(0), [](T a, T b) HWY_ATTR { return a + b; }, value);
}

// NaN is passed over: where it matters, the exponentials that follow bring it back.
template <typename T>
HWY_INLINE T tile_max(const T* x, int64_t begin, int64_t end) {
  return fold_tile(
      begin, end, -std::numeric_limits<T>::infinity(),
      [](T a, T b) HWY_ATTR { return b > a ? b : a; }, [x](int64_t i) HWY_ATTR { return x[i]; });
}

template <typename Body>
HWY_INLINE void for_each_tile(int64_t count, const Body& body) {
  for (int64_t begin = 0; begin < count; begin += kTileElements)
    body(begin, std::min(count, begin + kTileElements));
}

template <typename T, typename Value>
HWY_INLINE double row_sum(int64_t count, const Value& value) {
  double total = 0;
  for_each_tile(count, [&](int64_t begin, int64_t end) HWY_ATTR {
    total += static_cast<double>(tile_sum<T>(begin, end, value));
  });
  return total;
}

// Calls fill(out, begin, end) for every tile of a row, which puts elements [begin, end) at out[0]...;
// a streamed row goes through a tile that stays in the L1 cache.
template <typename T, typename Fill>
HWY_INLINE void write_tiles(T* y, int64_t count, RowStore store, const Fill& fill) {
  alignas(64) T tile[kTileElements];
  for_each_tile(count, [&](int64_t begin, int64_t end) HWY_ATTR {
    if (store == RowStore::cached) {
      fill(y + begin, begin, end);
    } else {
      fill(tile, begin, end);
      stream_copy(y + begin, tile, (end - begin) * static_cast<int64_t>(sizeof(T)));
    }
  });
}

// y[i] = value(i)
template <typename T, typename Value>
HWY_INLINE void write_row(T* y, int64_t count, RowStore store, const Value& value) {
  write_tiles(y, count, store, [&](T* HWY_RESTRICT out, int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) out[i - begin] = value(i);
  });
}

}  // namespace brrr::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
