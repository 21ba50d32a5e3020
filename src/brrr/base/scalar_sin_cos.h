// sin and cos: see scalar_math.h.
#pragma once

#include "brrr/base/scalar_blocks.h"

namespace brrr::math {

// The _reduced forms hold for |x| <= kTrigLimit; sin and cos give the same bits there and ask libm
// beyond. A kernel looks at the largest |x| of its tile and picks the loop.
template <Real T>
inline constexpr T kTrigLimit = sizeof(T) == 4 ? T(1e5) : T(1e9);

// (sin(r) / r - 1) / r^2 in z = r^2, |r| <= pi/2. The last bits of the coefficients are those with the
// smallest error of the rounded sum; the float ones give none above 1.
[[gnu::always_inline]] BRRR_HD inline float sin_polynomial(float z) {  // 2^-27.2
  return polynomial(z, -0x1.555544p-3f, 0x1.110e6cp-7f, -0x1.9f68f2p-13f, 0x1.5d8bcep-19f);
}

[[gnu::always_inline]] BRRR_HD inline double sin_polynomial(double z) {  // 2^-61.6
  return polynomial(z, -0x1.5555555555556p-3, 0x1.11111111110c9p-7, -0x1.a01a01a0148bcp-13,
                    0x1.71de3a52874e6p-19, -0x1.ae6454cb49192p-26, 0x1.6123cb28e9f71p-33,
                    -0x1.ae431d916ede8p-41, 0x1.8829a22afe0aap-49);
}

// sin(x), or cos(x) = sin(x + pi/2), as (-1)^k sin(r): k is the integer nearest to x / pi (+ 1/2), and
// r = x - k pi (+ pi/2) at most half a turn from zero. One polynomial over that takes fewer instructions
// than two over a quarter and a choice between them. Cody-Waite with pi in three parts: with fma the
// first subtraction is exact where r is small (a multiple of ulp(1) below 2), so r keeps its relative
// accuracy even when x is the number closest to a multiple of pi/2.
template <bool kCosine, Real T>
[[gnu::always_inline]] BRRR_HD inline T sin_of_turns(T x) {
  using F = Format<T>;
  T shifted, turns;
  if constexpr (kCosine) {
    shifted = fma(x, F::one_over_pi, T(0.5)) + F::round_magic;
    turns = (shifted - F::round_magic) - T(0.5);
  } else {
    shifted = fma(x, F::one_over_pi, F::round_magic);
    turns = shifted - F::round_magic;
  }
  const T r = fma(turns, -F::pi[2], fma(turns, -F::pi[1], fma(turns, -F::pi[0], x)));
  const T z = r * r;
  T sine = fma(r * z, sin_polynomial(z), r);
  if constexpr (sizeof(T) == 8) sine = at_least(at_most(sine, T(1)), T(-1));
  constexpr int to_sign = F::mantissa_bits == 23 ? 31 : 63;
  return from_bits<T>(to_bits(sine) ^ (to_bits(shifted) << to_sign));
}

// sin(x) = -sin(-x), used so that sin(-0) = -0.
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T sin_reduced(T x) {
  const BitsOf<T> sign = to_bits(x) & Format<T>::sign_bit;
  return from_bits<T>(to_bits(sin_of_turns<false>(abs(x))) ^ sign);
}

template <Real T>
[[gnu::always_inline]] BRRR_HD inline T cos_reduced(T x) {
  return sin_of_turns<true>(x);
}

template <Real T>
BRRR_HD inline T sin(T x) {
  return abs(x) <= kTrigLimit<T> ? sin_reduced(x) : T(::sin(double(x)));
}

template <Real T>
BRRR_HD inline T cos(T x) {
  return abs(x) <= kTrigLimit<T> ? cos_reduced(x) : T(::cos(double(x)));
}

}  // namespace brrr::math
