// Loops for the machine's limits, compiled once for each CPU target by Highway's foreach_target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/hardware/measure_cpu.cpp"
#include "brrr/hardware/measure_cpu.h"

#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::hardware::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A multiply-add takes about 4 cycles and two can start in each, so 8 chains keep the units busy;
// twelve leave room, and with the two constants still fit the 16 registers of AVX2.
constexpr int64_t kChains = 12;

// x <- x * 0.5 + 1 tends to 2: never subnormal, never infinite.
template <typename T>
T run_chains(int64_t steps) {
  const hn::ScalableTag<T> d;
  const auto half = hn::Set(d, T(0.5)), one = hn::Set(d, T(1));
  auto x0 = hn::Iota(d, T(0)), x1 = hn::Iota(d, T(1)), x2 = hn::Iota(d, T(2));
  auto x3 = hn::Iota(d, T(3)), x4 = hn::Iota(d, T(4)), x5 = hn::Iota(d, T(5));
  auto x6 = hn::Iota(d, T(6)), x7 = hn::Iota(d, T(7)), x8 = hn::Iota(d, T(8));
  auto x9 = hn::Iota(d, T(9)), x10 = hn::Iota(d, T(10)), x11 = hn::Iota(d, T(11));
  for (int64_t i = 0; i < steps; ++i) {
    x0 = hn::MulAdd(x0, half, one);
    x1 = hn::MulAdd(x1, half, one);
    x2 = hn::MulAdd(x2, half, one);
    x3 = hn::MulAdd(x3, half, one);
    x4 = hn::MulAdd(x4, half, one);
    x5 = hn::MulAdd(x5, half, one);
    x6 = hn::MulAdd(x6, half, one);
    x7 = hn::MulAdd(x7, half, one);
    x8 = hn::MulAdd(x8, half, one);
    x9 = hn::MulAdd(x9, half, one);
    x10 = hn::MulAdd(x10, half, one);
    x11 = hn::MulAdd(x11, half, one);
  }
  const auto low = hn::Add(hn::Add(hn::Add(x0, x1), hn::Add(x2, x3)), hn::Add(x4, x5));
  const auto high = hn::Add(hn::Add(hn::Add(x6, x7), hn::Add(x8, x9)), hn::Add(x10, x11));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
}

float f32_chains(int64_t steps) { return run_chains<float>(steps); }
double f64_chains(int64_t steps) { return run_chains<double>(steps); }

template <typename T>
int64_t chain_flops() {
  return 2 * kChains * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}
int64_t f32_chain_flops() { return chain_flops<float>(); }
int64_t f64_chain_flops() { return chain_flops<double>(); }

float sum_of(const float* HWY_RESTRICT x, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  for (int64_t i = 0; i < count; i += 4 * lanes) {
    s0 = hn::Add(s0, hn::Load(d, x + i));
    s1 = hn::Add(s1, hn::Load(d, x + i + lanes));
    s2 = hn::Add(s2, hn::Load(d, x + i + 2 * lanes));
    s3 = hn::Add(s3, hn::Load(d, x + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

void fill_with(float* HWY_RESTRICT y, float value, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto values = hn::Set(d, value);
  for (int64_t i = 0; i < count; i += lanes) hn::Store(values, d, y + i);
}

void stream_fill(float* HWY_RESTRICT y, float value, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto values = hn::Set(d, value);
  for (int64_t i = 0; i < count; i += lanes) hn::Stream(values, d, y + i);
  hwy::FlushStream();
}

void copy_to(float* HWY_RESTRICT y, const float* HWY_RESTRICT x, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes) hn::Store(hn::Load(d, x + i), d, y + i);
}

void stream_copy(float* HWY_RESTRICT y, const float* HWY_RESTRICT x, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes) hn::Stream(hn::Load(d, x + i), d, y + i);
  hwy::FlushStream();
}

}  // namespace brrr::hardware::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr::hardware {
HWY_EXPORT(f32_chains);
HWY_EXPORT(f64_chains);
HWY_EXPORT(f32_chain_flops);
HWY_EXPORT(f64_chain_flops);
HWY_EXPORT(sum_of);
HWY_EXPORT(fill_with);
HWY_EXPORT(stream_fill);
HWY_EXPORT(copy_to);
HWY_EXPORT(stream_copy);

float run_f32_chains(int64_t steps) { return HWY_DYNAMIC_DISPATCH(f32_chains)(steps); }
double run_f64_chains(int64_t steps) { return HWY_DYNAMIC_DISPATCH(f64_chains)(steps); }
int64_t f32_chain_flops_per_step() { return HWY_DYNAMIC_DISPATCH(f32_chain_flops)(); }
int64_t f64_chain_flops_per_step() { return HWY_DYNAMIC_DISPATCH(f64_chain_flops)(); }
float sum_floats(const float* x, int64_t count) { return HWY_DYNAMIC_DISPATCH(sum_of)(x, count); }
void fill_floats(float* y, float value, int64_t count, Stores stores) {
  if (stores == Stores::ordinary)
    HWY_DYNAMIC_DISPATCH(fill_with)(y, value, count);
  else
    HWY_DYNAMIC_DISPATCH(stream_fill)(y, value, count);
}
void copy_floats(float* y, const float* x, int64_t count, Stores stores) {
  if (stores == Stores::ordinary)
    HWY_DYNAMIC_DISPATCH(copy_to)(y, x, count);
  else
    HWY_DYNAMIC_DISPATCH(stream_copy)(y, x, count);
}
}  // namespace brrr::hardware
#endif
