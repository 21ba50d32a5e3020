// What ops of one operand compute, element by element: one text for the loops of the CPU, for kernels that
// nvcc compiles and for those that are generated and compiled when a program is made. The table of all
// functions is at the end.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

#include "brrr/base/scalar_math.h"
#include "brrr/kernels/scalar/wrap.h"

namespace brrr::functors {

struct Neg {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    if constexpr (std::integral<T>)
      return sub_wrapping(T(0), x);
    else
      return -x;
  }
};
struct Abs {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    if constexpr (std::integral<T>)
      return is_negative(x) ? sub_wrapping(T(0), x) : x;
    else
      return std::fabs(x);
  }
};
struct Sign {  // NaN stays NaN, zero stays the zero it is
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return x > 0 ? T(1) : is_negative(x) ? T(-1) : x;
  }
};
struct Square {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return mul_wrapping(x, x);
  }
};
struct Relu {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return is_negative(x) ? T(0) : x;
  }  // a comparison with NaN is false, so NaN stays
};
struct Exp {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::exp(x);
  }
};
struct Log {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::log(x);
  }
};
struct Sqrt {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::sqrt(x);
  }
};
struct Rsqrt {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::rsqrt(x);
  }
};
struct Reciprocal {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return T(1) / x;
  }
};
struct Tanh {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::tanh(x);
  }
};
struct Sigmoid {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::sigmoid(x);
  }
};
struct Erf {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::erf(x);
  }
};
struct Gelu {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::gelu_erf(x);
  }
};
struct Silu {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::silu(x);
  }
};
struct Sin {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::sin(x);
  }
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of_reduced(T x) {
    return math::sin_reduced(x);
  }
};
struct Cos {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::cos(x);
  }
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of_reduced(T x) {
    return math::cos_reduced(x);
  }
};

struct Tan {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::sin(x) / math::cos(x);
  }
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of_reduced(T x) {
    return math::sin_reduced(x) / math::cos_reduced(x);
  }
};
struct Expm1 {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::expm1(x);
  }
};
struct Log1p {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::log1p(x);
  }
};
struct Softplus {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::softplus(x);
  }
};
struct GeluTanh {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return math::gelu_tanh(x);
  }
};
struct Floor {  // integers are whole already
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    if constexpr (std::integral<T>)
      return x;
    else
      return std::floor(x);
  }
};
struct Ceil {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    if constexpr (std::integral<T>)
      return x;
    else
      return std::ceil(x);
  }
};
struct Round {  // in the rounding mode that is always on: to nearest, halves to even
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    if constexpr (std::integral<T>)
      return x;
    else
      return std::nearbyint(x);
  }
};
struct IsNan {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return x != x ? T(1) : T(0);
  }
};
struct IsInf {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    if constexpr (std::integral<T>)
      return T(0);
    else
      return std::fabs(x) == std::numeric_limits<T>::infinity() ? T(1) : T(0);
  }
};
struct IsFinite {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    if constexpr (std::integral<T>)
      return T(1);
    else
      return std::fabs(x) < std::numeric_limits<T>::infinity() ? T(1) : T(0);
  }
};
struct LogicalNot {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x) {
    return x == T(0) ? T(1) : T(0);
  }
};
// 1 sign, 8 exponent and 10 mantissa bits stay. A NaN whose payload lies in the dropped bits stays NaN.
struct ToTf32 {
  BRRR_HD static float of(float x) {
    const float kept = __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, x) & 0xffffe000U);
    return x == x ? kept : x;
  }
};

// Functions with settings: parameters after the operand, as many as `settings` says. unary_settings.h
// reads them from attributes.
struct LeakyRelu {
  static constexpr int settings = 1;
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x, T slope) {
    return x > T(0) ? x : x * slope;
  }
};
struct Clamp {  // comparisons with NaN are false, so NaN stays; the upper bound has the last word
  static constexpr int settings = 2;
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x, T low, T high) {
    const T raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
};

}  // namespace brrr::functors

// The table: ROW(name, functor, chain) for every function of one operand. The enum (unary_tiles.h), the loops
// of the CPU, the text of generated kernels and the built-in kernels follow from it. A functor computes in
// the types that its `of` takes: math::Real means floats only. `chain` is its code in chain_tiles.h, for
// functions of an instruction or two.
#define BRRR_UNARY_FUNCTIONS(ROW)         \
  ROW(neg, Neg, neg)                      \
  ROW(abs, Abs, abs)                      \
  ROW(sign, Sign, none)                   \
  ROW(square, Square, square)             \
  ROW(relu, Relu, relu)                   \
  ROW(exp, Exp, none)                     \
  ROW(log, Log, none)                     \
  ROW(sqrt, Sqrt, sqrt)                   \
  ROW(rsqrt, Rsqrt, none)                 \
  ROW(reciprocal, Reciprocal, reciprocal) \
  ROW(sin, Sin, none)                     \
  ROW(cos, Cos, none)                     \
  ROW(tanh, Tanh, none)                   \
  ROW(sigmoid, Sigmoid, none)             \
  ROW(erf, Erf, none)                     \
  ROW(gelu, Gelu, none)                   \
  ROW(silu, Silu, none)                   \
  ROW(expm1, Expm1, none)                 \
  ROW(log1p, Log1p, none)                 \
  ROW(tan, Tan, none)                     \
  ROW(leaky_relu, LeakyRelu, none)        \
  ROW(softplus, Softplus, none)           \
  ROW(gelu_tanh, GeluTanh, none)          \
  ROW(floor, Floor, none)                 \
  ROW(ceil, Ceil, none)                   \
  ROW(round, Round, none)                 \
  ROW(clamp, Clamp, none)                 \
  ROW(isnan, IsNan, none)                 \
  ROW(isinf, IsInf, none)                 \
  ROW(isfinite, IsFinite, none)           \
  ROW(logical_not, LogicalNot, none)      \
  ROW(to_tf32, ToTf32, none)
