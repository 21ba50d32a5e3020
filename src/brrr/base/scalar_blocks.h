// What the functions of scalar_math.h are made of: bits of floats, fused multiply-adds, polynomials.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>

#include "brrr/base/host_device.h"

namespace brrr::math {

template <typename T>
concept Real = std::same_as<T, float> || std::same_as<T, double>;

// Layout and reduction constants of one floating-point type.
template <Real T>
struct Format;

template <>
struct Format<float> {
  using Bits = std::uint32_t;
  static constexpr int mantissa_bits = 23;
  static constexpr Bits bias = 127;
  static constexpr Bits sign_bit = 0x80000000u;
  static constexpr Bits one = 0x3f800000u;
  static constexpr Bits sqrt_half = 0x3f3504f3u;  // bits of sqrt(1/2)
  static constexpr float infinity = __builtin_huge_valf();
  static constexpr float nan = __builtin_nanf("");
  static constexpr float to_normal = 0x1p23f;  // lifts every subnormal into the normal range
  static constexpr float two_to_mantissa = 0x1p23f;
  // Adding 1.5 * 2^mantissa_bits rounds to the nearest integer and leaves it in the low bits.
  static constexpr float round_magic = 0x1.8p23f;
  static constexpr float log2_e = 0x1.715476p0f;
  static constexpr float ln2_hi = 0x1.62e43p-1f, ln2_lo = -0x1.05c61p-29f;
  static constexpr float sqrt_half_value = 0x1.6a09e6p-1f;
  static constexpr float inv_sqrt_2pi = 0x1.988454p-2f;
  static constexpr float sqrt_8_over_pi = 0x1.988454p0f;
  static constexpr float one_over_pi = 0x1.45f306p-2f;
  static constexpr float pi[3] = {0x1.921fb6p1f, -0x1.777a5cp-24f, -0x1.ee59dap-49f};
};

template <>
struct Format<double> {
  using Bits = std::uint64_t;
  static constexpr int mantissa_bits = 52;
  static constexpr Bits bias = 1023;
  static constexpr Bits sign_bit = 0x8000000000000000u;
  static constexpr Bits one = 0x3ff0000000000000u;
  static constexpr Bits sqrt_half = 0x3fe6a09e667f3bcdu;
  static constexpr double infinity = __builtin_huge_val();
  static constexpr double nan = __builtin_nan("");
  static constexpr double to_normal = 0x1p52;
  static constexpr double two_to_mantissa = 0x1p52;
  static constexpr double round_magic = 0x1.8p52;
  static constexpr double log2_e = 0x1.71547652b82fep0;
  static constexpr double ln2_hi = 0x1.62e42fefa39efp-1, ln2_lo = 0x1.abc9e3b39803fp-56;
  static constexpr double sqrt_half_value = 0x1.6a09e667f3bcdp-1;
  static constexpr double inv_sqrt_2pi = 0x1.9884533d43651p-2;
  static constexpr double sqrt_8_over_pi = 0x1.9884533d43651p0;
  static constexpr double one_over_pi = 0x1.45f306dc9c883p-2;
  static constexpr double pi[3] = {0x1.921fb54442d18p1, 0x1.1a62633145c07p-53,
                                   -0x1.f1976b7ed8fbcp-109};
};

template <Real T>
using BitsOf = typename Format<T>::Bits;

template <Real T>
[[gnu::always_inline]] BRRR_HD inline BitsOf<T> to_bits(T x) {
  return __builtin_bit_cast(BitsOf<T>, x);
}

template <Real T>
[[gnu::always_inline]] BRRR_HD inline T from_bits(BitsOf<T> bits) {
  return __builtin_bit_cast(T, bits);
}

// a * b + c, rounded once.
[[gnu::always_inline]] BRRR_HD inline float fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return ::fmaf(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}

[[gnu::always_inline]] BRRR_HD inline double fma(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return ::fma(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}

template <Real T>
[[gnu::always_inline]] BRRR_HD inline T abs(T x) {
  return from_bits<T>(to_bits(x) & ~Format<T>::sign_bit);
}

// |magnitude| with the sign of `sign`.
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T copysign(T magnitude, T sign) {
  constexpr BitsOf<T> sign_bit = Format<T>::sign_bit;
  return from_bits<T>((to_bits(magnitude) & ~sign_bit) | (to_bits(sign) & sign_bit));
}

// The smaller or larger of x and a bound that is not NaN; NaN stays NaN.
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T at_most(T x, T bound) {
  return x > bound ? bound : x;
}

template <Real T>
[[gnu::always_inline]] BRRR_HD inline T at_least(T x, T bound) {
  return x < bound ? bound : x;
}

// c0 + x (c1 + x (c2 + ...)), Horner's rule: the iterations of a loop are independent, so the
// processor overlaps them and the shortest instruction count wins over the shortest chain.
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T polynomial(T, T c0) {
  return c0;
}

template <Real T, typename... Rest>
[[gnu::always_inline]] BRRR_HD inline T polynomial(T x, T c0, T c1, Rest... rest) {
  return fma(x, polynomial(x, c1, rest...), c0);
}

[[gnu::always_inline]] BRRR_HD inline float sqrt(float x) { return __builtin_sqrtf(x); }
[[gnu::always_inline]] BRRR_HD inline double sqrt(double x) { return __builtin_sqrt(x); }

template <Real T>
[[gnu::always_inline]] BRRR_HD inline T rsqrt(T x) {
  return T(1) / sqrt(x);
}

}  // namespace brrr::math
