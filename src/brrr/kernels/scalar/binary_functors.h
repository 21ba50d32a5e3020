// What ops of two and three operands compute, element by element, for every backend; see unary_functors.h.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>

#include "brrr/base/scalar_math.h"
#include "brrr/kernels/scalar/wrap.h"

namespace brrr::functors {

struct Add {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    return add_wrapping(a, b);
  }
};
struct Sub {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    return sub_wrapping(a, b);
  }
};
struct Mul {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    return mul_wrapping(a, b);
  }
};
struct Div {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    return a / b;
  }
};
struct Pow {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    if constexpr (std::integral<T>)
      return integer_power(a, b);
    else
      return math::pow(a, b);
  }
  // Squares and multiplies, wrapping. A negative exponent leaves 1/a^n rounded to zero, except +-1.
  template <std::integral T>
  BRRR_HD static T integer_power(T base, T exponent) {
    if constexpr (std::signed_integral<T>) {
      if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    }
    T result = 1;
    for (; exponent > 0; exponent >>= 1) {
      if (exponent & 1) result = mul_wrapping(result, base);
      base = mul_wrapping(base, base);
    }
    return result;
  }
};
struct Maximum {  // a >= b is false when either is NaN: then a if a is NaN, else b
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    return a >= b || a != a ? a : b;
  }
};
struct Minimum {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    return a <= b || a != a ? a : b;
  }
};
struct Equal {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    return a == b ? T(1) : T(0);
  }
};
struct NotEqual {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    return a != b ? T(1) : T(0);
  }
};
struct Less {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    return a < b ? T(1) : T(0);
  }
};
struct LessEqual {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    return a <= b ? T(1) : T(0);
  }
};
struct Greater {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    return a > b ? T(1) : T(0);
  }
};
struct GreaterEqual {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    return a >= b ? T(1) : T(0);
  }
};

// An integer modulo 0 is refused before tiles run; here it is 0, because a trap has no words. So is
// anything modulo -1, where the smallest integer would overflow.
struct Fmod {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    if constexpr (std::unsigned_integral<T>)
      return b == 0 ? T(0) : a % b;
    else if constexpr (std::integral<T>)
      return b == 0 || b == -1 ? T(0) : a % b;
    else
      return std::fmod(a, b);
  }
};
struct Remainder {  // the sign of b, as in Python
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    const T rest = Fmod::of(a, b);
    return rest != T(0) && is_negative(rest) != is_negative(b) ? rest + b : rest;
  }
};
// The quotient rounded towards minus infinity, as Python's //. An integer over 0 is refused before tiles run;
// here it is 0. Over -1 it is the negative, wrapping for the smallest integer.
struct FloorDivide {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    if constexpr (std::unsigned_integral<T>) {
      return b == 0 ? T(0) : a / b;
    } else if constexpr (std::integral<T>) {
      const T divisor = b == 0 || b == -1 ? T(1) : b;
      const T quotient = a / divisor, rest = a % divisor;
      const T down = rest != 0 && (rest < 0) != (b < 0) ? quotient - 1 : quotient;
      return b == 0 ? T(0) : b == -1 ? sub_wrapping(T(0), a) : down;
    } else {
      // a / b alone may round up to the next whole number; a - rest is a multiple of b.
      const T rest = std::fmod(a, b);
      const T near = (a - rest) / b;
      const T down = rest != T(0) && (rest < T(0)) != (b < T(0)) ? near - T(1) : near;
      const T below = std::floor(down);
      const T whole = down - below > T(0.5) ? below + T(1) : below;
      return b == T(0) ? a / b : whole == T(0) ? math::copysign(whole, a / b) : whole;
    }
  }
};
struct LogicalAnd {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    return (a != T(0)) & (b != T(0)) ? T(1) : T(0);
  }
};
struct LogicalOr {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    return (a != T(0)) | (b != T(0)) ? T(1) : T(0);
  }
};
struct LogicalXor {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T a, T b) {
    return (a != T(0)) != (b != T(0)) ? T(1) : T(0);
  }
};

struct Where {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T condition, T a, T b) {
    return condition != T(0) ? a : b;
  }
};

}  // namespace brrr::functors

// The table of functions of two and three operands; see unary_functors.h.
#define BRRR_BINARY_FUNCTIONS(ROW)       \
  ROW(add, Add, add)                     \
  ROW(sub, Sub, sub)                     \
  ROW(mul, Mul, mul)                     \
  ROW(div, Div, div)                     \
  ROW(pow, Pow, none)                    \
  ROW(maximum, Maximum, maximum)         \
  ROW(minimum, Minimum, minimum)         \
  ROW(equal, Equal, none)                \
  ROW(not_equal, NotEqual, none)         \
  ROW(less, Less, none)                  \
  ROW(less_equal, LessEqual, none)       \
  ROW(greater, Greater, none)            \
  ROW(greater_equal, GreaterEqual, none) \
  ROW(where, Where, none)                \
  ROW(fmod, Fmod, none)                  \
  ROW(remainder, Remainder, none)        \
  ROW(floor_divide, FloorDivide, none)   \
  ROW(logical_and, LogicalAnd, none)     \
  ROW(logical_or, LogicalOr, none)       \
  ROW(logical_xor, LogicalXor, none)
