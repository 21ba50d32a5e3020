// exp, expm1, log, log1p: see scalar_math.h.
#pragma once

#include "brrr/base/scalar_blocks.h"

namespace brrr::math {

// ---- exp, expm1 --------------------------------------------------------------------------------

// x = k ln2 + r with integer k and |r| <= ln2 / 2. With fma the first subtraction is exact, so r
// carries one rounding. The low bits of `shifted` hold k + offset.
template <Real T>
struct ExpReduction {
  T shifted, r;
};

template <Real T>
[[gnu::always_inline]] BRRR_HD inline ExpReduction<T> reduce_by_ln2(T x, T offset) {
  using F = Format<T>;
  const T magic = F::round_magic + offset;
  const T shifted = fma(x, F::log2_e, magic);
  const T k = shifted - magic;
  return {shifted, fma(k, -F::ln2_lo, fma(k, -F::ln2_hi, x))};
}

// e^r for |r| <= ln2 / 2.
[[gnu::always_inline]] BRRR_HD inline float exp_polynomial(float r) {  // 2^-28.2
  return polynomial(r, 1.0f, 1.0f, 0x1.fffffap-2f, 0x1.555492p-3f, 0x1.555a3ap-5f, 0x1.123964p-7f,
                    0x1.693c1ap-10f);
}

[[gnu::always_inline]] BRRR_HD inline double exp_polynomial(double r) {  // 2^-57.1
  return polynomial(r, 1.0, 1.0, 0x1.000000000000ap-1, 0x1.55555555554f7p-3, 0x1.55555555506b3p-5,
                    0x1.111111112845ep-7, 0x1.6c16c18495322p-10, 0x1.a01a0128427dep-13,
                    0x1.a01998da09252p-16, 0x1.71df282682846p-19, 0x1.28ae9a8d88e65p-22,
                    0x1.ad7de657df13dp-26);
}

// Beyond +-kExpLimit e^x is infinity, or rounds to zero.
template <Real T>
inline constexpr T kExpLimit = sizeof(T) == 4 ? T(104) : T(746);

// e^x for |x| <= kExpLimit. 2^k need not be a normal number (|k| reaches 150, or 1076), so
// the polynomial is multiplied by 2^floor(k/2) and 2^ceil(k/2): the first product is exact, the
// second rounds once, to infinity or a subnormal where that is due.
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T exp_in_range(T x) {
  using F = Format<T>;
  const auto [shifted, r] = reduce_by_ln2(x, T(2 * F::bias));
  const BitsOf<T> k = to_bits(shifted);  // k + 2 bias; the left shifts drop the bits above
  const BitsOf<T> half = k >> 1;
  const T scale_1 = from_bits<T>(half << F::mantissa_bits);
  const T scale_2 = from_bits<T>((k - half) << F::mantissa_bits);
  return exp_polynomial(r) * scale_1 * scale_2;
}

template <Real T>
[[gnu::always_inline]] BRRR_HD inline T exp(T x) {
  return exp_in_range(copysign(at_most(abs(x), kExpLimit<T>), x));
}

// e^x for x <= 0, up to rounding; what is too small for a normal number becomes 0. A third fewer
// instructions than exp, for sums and gates in which such numbers are lost anyway.
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T exp_below(T x) {
  using F = Format<T>;
  constexpr T smallest = sizeof(T) == 4 ? T(-87.3) : T(-708.3);
  const auto [shifted, r] = reduce_by_ln2(x, T(F::bias));
  const T y = exp_polynomial(r) * from_bits<T>(to_bits(shifted) << F::mantissa_bits);
  return x < smallest ? T(0) : y;  // -infinity too; NaN stays
}

// (e^r - 1 - r) / r^2 for |r| <= ln2 / 2.
[[gnu::always_inline]] BRRR_HD inline float expm1_polynomial(float r) {  // 2^-31
  return polynomial(r, 0x1p-1f, 0x1.555554p-3f, 0x1.5554eap-5f, 0x1.1113a2p-7f, 0x1.6d4be6p-10f,
                    0x1.9c8d3p-13f);
}

[[gnu::always_inline]] BRRR_HD inline double expm1_polynomial(double r) {  // 2^-56.3
  return polynomial(r, 0x1.0000000000001p-1, 0x1.5555555555557p-3, 0x1.5555555554d0dp-5,
                    0x1.1111111110086p-7, 0x1.6c16c16f172d5p-10, 0x1.a01a01ac17a7bp-13,
                    0x1.a019f36de66bbp-16, 0x1.71de01985af10p-19, 0x1.28024f0988111p-22,
                    0x1.af4f2b313d55fp-26, 0x1.e6349175c56b0p-30);
}

// e^x - 1 = 2 (t p + (t - 1/2)), t = 2^(k-1), p = e^r - 1: no cancellation, since p is small only
// beside t - 1/2 = 0. Half of 2^k, because k = 128 (1024) still gives finite results.
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T expm1(T x) {
  using F = Format<T>;
  // e^limit overflows with k = bias + 1, the largest that t can hold. Negative x get half the limit
  // (one less in the exponent), so that t cannot underflow; e^(-limit/2) is lost beside 1.
  constexpr T limit = sizeof(T) == 4 ? T(88.8) : T(709.8);
  const BitsOf<T> sign = to_bits(x) & F::sign_bit;
  const T bound = from_bits<T>(to_bits(limit) - (sign >> (8 * sizeof(T) - 1 - F::mantissa_bits)));
  const T clamped = from_bits<T>(to_bits(at_most(abs(x), bound)) | sign);
  const auto [shifted, r] = reduce_by_ln2(clamped, T(F::bias - 1));
  const T t = from_bits<T>(to_bits(shifted) << F::mantissa_bits);
  const T p = fma(r * r, expm1_polynomial(r), r);
  const T y = T(2) * fma(t, p, t - T(0.5));
  constexpr T tiny = sizeof(T) == 4 ? T(0x1p-26) : T(0x1p-55);
  return abs(x) < tiny ? x : y;  // keeps -0 and the last bit of subnormals
}

// ---- log, log1p --------------------------------------------------------------------------------

// log(1 + f) for sqrt(1/2) <= 1 + f <= sqrt(2), as f + the returned value; `tail` is added to it.
// float: log(1+f) = f + f^2 (-1/2 + f Q(f)).
[[gnu::always_inline]] BRRR_HD inline float log_below_f(float f, float tail) {  // 2^-29.3
  const float q =
      polynomial(f, -0.5f, 0x1.555548p-2f, -0x1.00002cp-2f, 0x1.99a496p-3f, -0x1.554c7cp-3f,
                 0x1.232f7ap-3f, -0x1.fe2c62p-4f, 0x1.e9296ep-4f, -0x1.d37e02p-4f, 0x1.036546p-4f);
  return fma(f * f, q, tail);
}

// double: with s = f / (2 + f), log(1+f) = 2 atanh(s) = f - (h - s (h + R(s^2))), h = f^2 / 2.
// This is fdlibm's form; s^2 < 0.03, so seven coefficients do (the series in f needs twenty).
[[gnu::always_inline]] BRRR_HD inline double log_below_f(double f, double tail) {  // 2^-59.3
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double h = 0.5 * f * f;
  const double r = polynomial(z, 0x1.5555555555593p-1, 0x1.999999997f98cp-2, 0x1.2492494237ccbp-2,
                              0x1.c71c51c6eacddp-3, 0x1.74664e3b780dcp-3, 0x1.39a0072a10a7dp-3,
                              0x1.2f1803b01fb00p-3);
  return fma(s, fma(z, r, h), tail) - h;
}

// log(x + c) for positive finite x and |c| at most half a unit in the last place of x:
// x = 2^e (1 + f), log = e ln2 + f + (rest).
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T log_positive(T x, T c_over_x) {
  using F = Format<T>;
  // Subnormals are lifted into the normal range. The others are halved and not left alone because
  // g++ would see through a factor of 1 and compute everything below twice.
  const bool small = x < T(1);
  const T normal = x * (small ? F::to_normal : T(0.5));
  // Moving the bits up by 1 - sqrt(1/2) makes the exponent field switch at sqrt(2), not at 2.
  const BitsOf<T> bits = to_bits(normal) + (F::one - F::sqrt_half);
  const BitsOf<T> mantissa = bits & ((BitsOf<T>(1) << F::mantissa_bits) - 1);
  const T f = from_bits<T>(mantissa + F::sqrt_half) - T(1);
  // The exponent becomes a number by being the mantissa of 2^mantissa_bits (no int64 conversion
  // instruction in AVX2).
  const T lifted = from_bits<T>((bits >> F::mantissa_bits) | to_bits(F::two_to_mantissa));
  constexpr T offset = F::two_to_mantissa + T(F::bias);
  const T e = lifted - (small ? offset + T(F::mantissa_bits) : offset - T(1));
  return fma(e, F::ln2_hi, f + log_below_f(f, fma(e, F::ln2_lo, c_over_x)));
}

// y = log(x) where x is positive and finite, else what the standard asks for.
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T log_special_values(T x, T y) {
  using F = Format<T>;
  const T not_positive = x == T(0) ? -F::infinity : F::nan;  // x = NaN: NaN too
  return x > T(0) ? (x == F::infinity ? x : y) : not_positive;
}

template <Real T>
[[gnu::always_inline]] BRRR_HD inline T log(T x) {
  return log_special_values(x, log_positive(x, T(0)));
}

// log(1 + x) = log(u) + c / u, where u = 1 + x rounded and c is what the rounding lost.
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T log1p(T x) {
  const T u = T(1) + x;
  const T c = x > T(1) ? T(1) - (u - x) : x - (u - T(1));
  const T y = log_special_values(u, log_positive(u, c / u));
  constexpr T tiny = sizeof(T) == 4 ? T(0x1p-26) : T(0x1p-55);
  return abs(x) < tiny ? x : y;  // keeps -0 and the last bit of subnormals
}

}  // namespace brrr::math
