// Tile functions of one operand, compiled once for each CPU target by Highway's foreach_target.
// Plain loops over the branch-free functions of base/scalar_math.h, which g++ vectorises.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/ops/unary_cpu.cpp"
#include <bit>
#include <limits>

#include "brrr/base/scalar_math.h"
#include "brrr/ops/unary_tiles.h"
#include "brrr/ops/wrap.h"
#include "brrr/tensor/element.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::HWY_NAMESPACE {

struct Neg {
  template <typename T>
  static T of(T x) {
    if constexpr (std::integral<T>)
      return sub_wrapping(T(0), x);
    else
      return -x;
  }
};
struct Abs {
  template <typename T>
  static T of(T x) {
    if constexpr (std::integral<T>)
      return x < 0 ? sub_wrapping(T(0), x) : x;
    else
      return std::fabs(x);
  }
};
struct Sign {  // NaN stays NaN, zero stays the zero it is
  template <typename T>
  static T of(T x) {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x;
  }
};
struct Square {
  template <typename T>
  static T of(T x) {
    return mul_wrapping(x, x);
  }
};
struct Relu {
  template <typename T>
  static T of(T x) {
    return x < 0 ? T(0) : x;
  }  // a comparison with NaN is false, so NaN stays
};
struct Exp {
  template <typename T>
  static T of(T x) {
    return math::exp(x);
  }
};
struct Log {
  template <typename T>
  static T of(T x) {
    return math::log(x);
  }
};
struct Sqrt {
  template <typename T>
  static T of(T x) {
    return math::sqrt(x);
  }
};
struct Rsqrt {
  template <typename T>
  static T of(T x) {
    return math::rsqrt(x);
  }
};
struct Reciprocal {
  template <typename T>
  static T of(T x) {
    return T(1) / x;
  }
};
struct Tanh {
  template <typename T>
  static T of(T x) {
    return math::tanh(x);
  }
};
struct Sigmoid {
  template <typename T>
  static T of(T x) {
    return math::sigmoid(x);
  }
};
struct Erf {
  template <typename T>
  static T of(T x) {
    return math::erf(x);
  }
};
struct Gelu {
  template <typename T>
  static T of(T x) {
    return math::gelu_erf(x);
  }
};
struct Silu {
  template <typename T>
  static T of(T x) {
    return math::silu(x);
  }
};
struct Sin {
  template <typename T>
  static T of(T x) {
    return math::sin(x);
  }
  template <typename T>
  static T of_reduced(T x) {
    return math::sin_reduced(x);
  }
};
struct Cos {
  template <typename T>
  static T of(T x) {
    return math::cos(x);
  }
  template <typename T>
  static T of_reduced(T x) {
    return math::cos_reduced(x);
  }
};

struct Tan {
  template <typename T>
  static T of(T x) {
    return math::sin(x) / math::cos(x);
  }
  template <typename T>
  static T of_reduced(T x) {
    return math::sin_reduced(x) / math::cos_reduced(x);
  }
};
struct Expm1 {
  template <typename T>
  static T of(T x) {
    return math::expm1(x);
  }
};
struct Log1p {
  template <typename T>
  static T of(T x) {
    return math::log1p(x);
  }
};
struct Softplus {
  template <typename T>
  static T of(T x) {
    return math::softplus(x);
  }
};
struct GeluTanh {
  template <typename T>
  static T of(T x) {
    return math::gelu_tanh(x);
  }
};
struct Floor {  // integers are whole already
  template <typename T>
  static T of(T x) {
    if constexpr (std::integral<T>)
      return x;
    else
      return std::floor(x);
  }
};
struct Ceil {
  template <typename T>
  static T of(T x) {
    if constexpr (std::integral<T>)
      return x;
    else
      return std::ceil(x);
  }
};
struct Round {  // in the rounding mode that is always on: to nearest, halves to even
  template <typename T>
  static T of(T x) {
    if constexpr (std::integral<T>)
      return x;
    else
      return std::nearbyint(x);
  }
};
struct IsNan {
  template <typename T>
  static T of(T x) {
    return x != x ? T(1) : T(0);
  }
};
struct IsInf {
  template <typename T>
  static T of(T x) {
    if constexpr (std::integral<T>)
      return T(0);
    else
      return std::fabs(x) == std::numeric_limits<T>::infinity() ? T(1) : T(0);
  }
};
struct IsFinite {
  template <typename T>
  static T of(T x) {
    if constexpr (std::integral<T>)
      return T(1);
    else
      return std::fabs(x) < std::numeric_limits<T>::infinity() ? T(1) : T(0);
  }
};
struct LogicalNot {
  template <typename T>
  static T of(T x) {
    return x == T(0) ? T(1) : T(0);
  }
};
// 1 sign, 8 exponent and 10 mantissa bits stay. A NaN whose payload lies in the dropped bits stays NaN.
struct ToTf32 {
  static float of(float x) {
    const float kept = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0xffffe000U);
    return x == x ? kept : x;
  }
};

// Functions with settings: made from the attributes once a tile.
template <typename T>
struct LeakyRelu {
  T slope;
  explicit LeakyRelu(const Attrs& attrs) : slope(static_cast<T>(attrs.number("slope"))) {}
  T operator()(T x) const { return x > T(0) ? x : x * slope; }
};
template <typename T>
struct Clamp {  // comparisons with NaN are false, so NaN stays; the upper bound has the last word
  T low = std::numeric_limits<T>::lowest(), high = std::numeric_limits<T>::max();
  explicit Clamp(const Attrs& attrs) {
    if constexpr (std::floating_point<T>) {
      low = -std::numeric_limits<T>::infinity(), high = std::numeric_limits<T>::infinity();
    }
    if (attrs.has("low")) low = convert_element<T>(attrs.number("low"));
    if (attrs.has("high")) high = convert_element<T>(attrs.number("high"));
  }
  T operator()(T x) const {
    const T raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
};

template <typename F, typename T>
void unary_loop(const TileCall& call) {
  const T* HWY_RESTRICT x = static_cast<const T*>(call.inputs[0]);
  T* HWY_RESTRICT y = static_cast<T*>(call.output);
  for (int64_t i = 0; i < call.count; ++i) y[i] = F::of(x[i]);
}

template <template <typename> typename F, typename T>
void setting_loop(const TileCall& call) {
  const T* HWY_RESTRICT x = static_cast<const T*>(call.inputs[0]);
  T* HWY_RESTRICT y = static_cast<T*>(call.output);
  const F<T> function(*call.attrs);
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
      return {&setting_loop<LeakyRelu, float>, &setting_loop<LeakyRelu, double>, nullptr};
    case Unary::softplus: return float_tiles<Softplus>();
    case Unary::gelu_tanh: return float_tiles<GeluTanh>();
    case Unary::floor: return number_tiles<Floor>();
    case Unary::ceil: return number_tiles<Ceil>();
    case Unary::round: return number_tiles<Round>();
    case Unary::clamp:
      return {&setting_loop<Clamp, float>, &setting_loop<Clamp, double>,
              &setting_loop<Clamp, int64_t>};
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
