// Tile functions of one operand, compiled once for each CPU target by Highway's foreach_target.
// Plain loops over branch-free functions, which g++ vectorises.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/ops/unary_cpu.cpp"
#include <bit>

#include "brrr/ops/unary_functors.h"
#include "brrr/ops/unary_settings.h"
#include "brrr/ops/unary_tiles.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::HWY_NAMESPACE {
using namespace functors;

template <typename F, typename T>
void unary_loop(const TileCall& call) {
  const T* HWY_RESTRICT x = static_cast<const T*>(call.inputs[0]);
  T* HWY_RESTRICT y = static_cast<T*>(call.output);
  for (int64_t i = 0; i < call.count; ++i) y[i] = F::of(x[i]);
}

template <auto kMake, typename T>
void setting_loop(const TileCall& call) {
  const T* HWY_RESTRICT x = static_cast<const T*>(call.inputs[0]);
  T* HWY_RESTRICT y = static_cast<T*>(call.output);
  const auto function = kMake(*call.attrs);
  for (int64_t i = 0; i < call.count; ++i) y[i] = function(x[i]);
}

// sin and cos of huge arguments need a reduction that does not vectorise: the loop takes all for small ones
// and notes the largest (bits of floats without their sign are in the order of their sizes, NaN last), and a
// tile that has a huge one goes over those again.
template <typename F, typename T>
void trigonometric_loop(const TileCall& call) {
  using Bits = math::BitsOf<T>;
  const T* HWY_RESTRICT x = static_cast<const T*>(call.inputs[0]);
  T* HWY_RESTRICT y = static_cast<T*>(call.output);
  Bits largest = 0;
  for (int64_t i = 0; i < call.count; ++i) {
    const Bits size = std::bit_cast<Bits>(x[i]) & ~math::Format<T>::sign_bit;
    largest = largest < size ? size : largest;
    y[i] = F::of_reduced(x[i]);
  }
  if (largest <= std::bit_cast<Bits>(math::kTrigLimit<T>)) return;
  for (int64_t i = 0; i < call.count; ++i) {
    if (!(std::fabs(x[i]) <= math::kTrigLimit<T>)) y[i] = F::of(x[i]);
  }
}

template <typename F>
constexpr TileKernels float_tiles(ChainCode chain = ChainCode::none) {
  return {&unary_loop<F, float>, &unary_loop<F, double>, nullptr, chain};
}
template <typename F>
constexpr TileKernels number_tiles(ChainCode chain = ChainCode::none) {
  return {&unary_loop<F, float>, &unary_loop<F, double>, &unary_loop<F, int64_t>, chain};
}
template <typename F>
constexpr TileKernels trigonometric_tiles() {
  return {&trigonometric_loop<F, float>, &trigonometric_loop<F, double>, nullptr};
}

TileKernels unary_table(Unary function) {
  switch (function) {
    case Unary::neg: return number_tiles<Neg>(ChainCode::neg);
    case Unary::abs: return number_tiles<Abs>(ChainCode::abs);
    case Unary::sign: return number_tiles<Sign>();
    case Unary::square: return number_tiles<Square>(ChainCode::square);
    case Unary::relu: return number_tiles<Relu>(ChainCode::relu);
    case Unary::exp: return float_tiles<Exp>();
    case Unary::log: return float_tiles<Log>();
    case Unary::sqrt: return float_tiles<Sqrt>(ChainCode::sqrt);
    case Unary::rsqrt: return float_tiles<Rsqrt>();
    case Unary::reciprocal: return float_tiles<Reciprocal>(ChainCode::reciprocal);
    case Unary::sin: return trigonometric_tiles<Sin>();
    case Unary::cos: return trigonometric_tiles<Cos>();
    case Unary::tanh: return float_tiles<Tanh>();
    case Unary::sigmoid: return float_tiles<Sigmoid>();
    case Unary::erf: return float_tiles<Erf>();
    case Unary::gelu: return float_tiles<Gelu>();
    case Unary::silu: return float_tiles<Silu>();
    case Unary::expm1: return float_tiles<Expm1>();
    case Unary::log1p: return float_tiles<Log1p>();
    case Unary::tan: return trigonometric_tiles<Tan>();
    case Unary::leaky_relu:
      return {&setting_loop<make_leaky_relu<float>, float>,
              &setting_loop<make_leaky_relu<double>, double>, nullptr};
    case Unary::softplus: return float_tiles<Softplus>();
    case Unary::gelu_tanh: return float_tiles<GeluTanh>();
    case Unary::floor: return number_tiles<Floor>();
    case Unary::ceil: return number_tiles<Ceil>();
    case Unary::round: return number_tiles<Round>();
    case Unary::clamp:
      return {&setting_loop<make_clamp<float>, float>, &setting_loop<make_clamp<double>, double>,
              &setting_loop<make_clamp<int64_t>, int64_t>};
    case Unary::isnan: return number_tiles<IsNan>();
    case Unary::isinf: return number_tiles<IsInf>();
    case Unary::isfinite: return number_tiles<IsFinite>();
    case Unary::logical_not: return number_tiles<LogicalNot>();
    case Unary::to_tf32: return {&unary_loop<ToTf32, float>, nullptr, nullptr};
  }
  return {};
}

}  // namespace brrr::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr {
HWY_EXPORT(unary_table);
TileKernels find_unary_tiles(Unary function) { return HWY_DYNAMIC_DISPATCH(unary_table)(function); }
}  // namespace brrr
#endif
