// Tile functions of one operand, compiled once for each CPU target by Highway's foreach_target.
// Plain loops over the branch-free functions of base/scalar_math.h, which g++ vectorises.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/ops/unary_cpu.cpp"
#include "brrr/base/scalar_math.h"
#include "brrr/ops/unary_tiles.h"
#include "brrr/ops/wrap.h"
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

template <typename F, typename T>
void unary_loop(const TileCall& call) {
  const T* HWY_RESTRICT x = static_cast<const T*>(call.inputs[0]);
  T* HWY_RESTRICT y = static_cast<T*>(call.output);
  for (int64_t i = 0; i < call.count; ++i) y[i] = F::of(x[i]);
}

// sin and cos of huge arguments need a reduction that does not vectorise; tiles without one skip it.
template <typename F, typename T>
void trigonometric_loop(const TileCall& call) {
  const T* HWY_RESTRICT x = static_cast<const T*>(call.inputs[0]);
  T* HWY_RESTRICT y = static_cast<T*>(call.output);
  int64_t outside = 0;
  for (int64_t i = 0; i < call.count; ++i)
    outside += std::fabs(x[i]) <= math::kTrigLimit<T> ? 0 : 1;
  if (outside == 0) {
    for (int64_t i = 0; i < call.count; ++i) y[i] = F::of_reduced(x[i]);
  } else {
    for (int64_t i = 0; i < call.count; ++i) y[i] = F::of(x[i]);
  }
}

template <typename F>
constexpr TileKernels float_tiles() {
  return {&unary_loop<F, float>, &unary_loop<F, double>, nullptr};
}
template <typename F>
constexpr TileKernels number_tiles() {
  return {&unary_loop<F, float>, &unary_loop<F, double>, &unary_loop<F, int64_t>};
}
template <typename F>
constexpr TileKernels trigonometric_tiles() {
  return {&trigonometric_loop<F, float>, &trigonometric_loop<F, double>, nullptr};
}

TileKernels unary_table(Unary function) {
  switch (function) {
    case Unary::neg: return number_tiles<Neg>();
    case Unary::abs: return number_tiles<Abs>();
    case Unary::sign: return number_tiles<Sign>();
    case Unary::square: return number_tiles<Square>();
    case Unary::relu: return number_tiles<Relu>();
    case Unary::exp: return float_tiles<Exp>();
    case Unary::log: return float_tiles<Log>();
    case Unary::sqrt: return float_tiles<Sqrt>();
    case Unary::rsqrt: return float_tiles<Rsqrt>();
    case Unary::reciprocal: return float_tiles<Reciprocal>();
    case Unary::sin: return trigonometric_tiles<Sin>();
    case Unary::cos: return trigonometric_tiles<Cos>();
    case Unary::tanh: return float_tiles<Tanh>();
    case Unary::sigmoid: return float_tiles<Sigmoid>();
    case Unary::erf: return float_tiles<Erf>();
    case Unary::gelu: return float_tiles<Gelu>();
    case Unary::silu: return float_tiles<Silu>();
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
