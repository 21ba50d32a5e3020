#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/kernels/cpu/rows/rope_tiles.cpp"
#include "brrr/kernels/cpu/rows/rope_tiles.h"

#include <algorithm>

#include "brrr/base/scalar_math.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The angle without its whole turns, in [-pi, pi]: small enough to keep its digits in f32.
HWY_INLINE float within_a_turn(double angle) {
  constexpr double kRound = 0x1.8p52;  // adding and subtracting it rounds to an integer
  constexpr double kTurnHigh = 0x1.921fb54442d18p2, kTurnLow = 0x1.1a62633145c07p-52;
  const double turns = (angle * (1 / kTurnHigh) + kRound) - kRound;
  return static_cast<float>(math::fma(turns, -kTurnLow, math::fma(turns, -kTurnHigh, angle)));
}

// Angles in f64 whatever T is: at position 100,000 an f32 angle would be wrong in its second digit.
template <typename T>
void fill_rope_table(double position, const double* HWY_RESTRICT frequencies, int64_t pairs,
                     T* HWY_RESTRICT row) {
  T* HWY_RESTRICT sines = row + pairs;
  double largest = 0;
  for (int64_t i = 0; i < pairs; ++i)
    largest = std::max(largest, math::abs(position * frequencies[i]));
  if (largest <= math::kTrigLimit<double> && sizeof(T) == 4) {
    for (int64_t i = 0; i < pairs; ++i) row[i] = within_a_turn(position * frequencies[i]);
    for (int64_t i = 0; i < pairs; ++i) {
      const auto angle = static_cast<float>(row[i]);
      row[i] = math::cos_reduced(angle);
      sines[i] = math::sin_reduced(angle);
    }
    return;
  }
  if (largest <= math::kTrigLimit<double>) {
    for (int64_t i = 0; i < pairs; ++i) {
      const double angle = position * frequencies[i];
      row[i] = static_cast<T>(math::cos_reduced(angle));
      sines[i] = static_cast<T>(math::sin_reduced(angle));
    }
    return;
  }
  for (int64_t i = 0; i < pairs; ++i) {
    row[i] = static_cast<T>(math::cos(position * frequencies[i]));
    sines[i] = static_cast<T>(math::sin(position * frequencies[i]));
  }
}

// Turning back swaps the signs of the sines, which is exact.
template <bool kInverse, typename T>
void turn_halves(const T* HWY_RESTRICT x, const T* HWY_RESTRICT cosine, const T* HWY_RESTRICT sine,
                 int64_t pairs, T* HWY_RESTRICT y) {
  const hn::ScalableTag<T> d;  // a head has two vectors or four: no time for loops that find out
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= pairs; i += lanes) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + pairs);
    const auto c = hn::LoadU(d, cosine + i), s = hn::LoadU(d, sine + i);
    const auto ac = hn::Mul(a, c), bs = hn::Mul(b, s), bc = hn::Mul(b, c), as = hn::Mul(a, s);
    hn::StoreU(kInverse ? hn::Add(ac, bs) : hn::Sub(ac, bs), d, y + i);
    hn::StoreU(kInverse ? hn::Sub(bc, as) : hn::Add(bc, as), d, y + i + pairs);
  }
  for (; i < pairs; ++i) {
    const T a = x[i], b = x[i + pairs], turn_by = kInverse ? -sine[i] : sine[i];
    y[i] = a * cosine[i] - b * turn_by;
    y[i + pairs] = b * cosine[i] + a * turn_by;
  }
}

template <bool kInverse, typename T>
void turn_neighbours(const T* HWY_RESTRICT x, const T* HWY_RESTRICT cosine,
                     const T* HWY_RESTRICT sine, int64_t pairs, T* HWY_RESTRICT y) {
  for (int64_t i = 0; i < pairs; ++i) {
    const T a = x[2 * i], b = x[2 * i + 1], turn_by = kInverse ? -sine[i] : sine[i];
    y[2 * i] = a * cosine[i] - b * turn_by;
    y[2 * i + 1] = b * cosine[i] + a * turn_by;
  }
}

template <bool kInverse, typename T>
void turn_all(const RopeRows<T>& rows) {
  for (int64_t r = 0; r < rows.rows; ++r) {
    const T* x = rows.x + r * rows.x_stride;
    T* y = rows.y + r * rows.y_stride;
    const T* table = rows.table + r * 2 * rows.pairs;
    if (rows.interleaved) {
      turn_neighbours<kInverse>(x, table, table + rows.pairs, rows.pairs, y);
    } else {
      turn_halves<kInverse>(x, table, table + rows.pairs, rows.pairs, y);
    }
    if (rows.columns > 2 * rows.pairs)
      std::copy(x + 2 * rows.pairs, x + rows.columns, y + 2 * rows.pairs);
  }
}

template <typename T>
void turn_rows(const RopeRows<T>& rows) {
  rows.inverse ? turn_all<true>(rows) : turn_all<false>(rows);
}

RopeKernels<float> rope_f32() { return {&fill_rope_table<float>, &turn_rows<float>}; }
RopeKernels<double> rope_f64() { return {&fill_rope_table<double>, &turn_rows<double>}; }

}  // namespace brrr::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr::kernels {
HWY_EXPORT(rope_f32);
HWY_EXPORT(rope_f64);
RopeKernels<float> rope_kernels_f32() { return HWY_DYNAMIC_DISPATCH(rope_f32)(); }
RopeKernels<double> rope_kernels_f64() { return HWY_DYNAMIC_DISPATCH(rope_f64)(); }
}  // namespace brrr::kernels
#endif
