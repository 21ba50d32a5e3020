// Elementary functions of one number, for float and double, the same text on CPU and GPU.
//
// One idea: no branch, no table, no call. Every path is computed and the result is selected with
// ?:, so g++ turns `for (i) y[i] = math::exp(x[i])` into vector code for whatever target the loop
// is compiled for. Exceptions, which branch or call libm: sin and cos (their _reduced forms do
// not), and pow of doubles.
//
// Equal bits everywhere: a fused multiply-add happens only where fma() is written, provided the
// file is compiled with
//   g++   -ffp-contract=off -fno-math-errno -fno-trapping-math   (never -ffast-math)
//   nvcc  -fmad=false
// A target without fma hardware gives the same bits through libm's fma, one element at a time.
// One exception: silu and gelu_tanh of floats, and their derivatives, on a GPU (sigmoid_and_slope).
//
// Largest error found, in units in the last place of the exact result: float against double libm
// over every 41st bit pattern, double against long double libm over 3 million random ones, both
// with the hard neighbourhoods of tests/base/scalar_math_test.cpp (which takes fewer patterns):
//
//             exp  expm1   log  log1p  tanh  sigmoid   erf  erfc   sin   cos  sqrt  rsqrt   pow
//   float    0.86   1.44  0.82   0.82  1.38     1.61  1.42  5.15  1.78  2.07  0.50   1.50  0.51
//   double   0.88   1.89  0.79   0.82  1.48     1.63  2.04  6.29  1.66  1.66  0.50   1.49  libm
//
// Results below the normal range are gradual (subnormal), and special values follow C's Annex F.
//
// Coefficients: minimax in relative error of the function (Remez exchange with 150-200 bits in
// mpmath, then rounded), written in hexadecimal so that they are exact. The error of each
// polynomial before rounding errors stands beside it.
#pragma once

#include "brrr/base/scalar_erf.h"
#include "brrr/base/scalar_exp_log.h"
#include "brrr/base/scalar_sin_cos.h"

namespace brrr::math {

// ---- tanh, sigmoid -----------------------------------------------------------------------------

// (tanh(x) / x - 1) / x^2 as a polynomial in z = x^2, |x| <= kTanhSplit.
template <Real T>
inline constexpr T kTanhSplit = sizeof(T) == 4 ? T(0.625) : T(0.55);

[[gnu::always_inline]] BRRR_HD inline float tanh_polynomial(float z) {  // 2^-27.7
  return polynomial(z, -0x1.555532p-2f, 0x1.1106f6p-3f, -0x1.b835d8p-5f, 0x1.51fc5ap-6f,
                    -0x1.75275ep-8f);
}

[[gnu::always_inline]] BRRR_HD inline double tanh_polynomial(double z) {  // 2^-60.6
  return polynomial(z, -0x1.555555555554fp-2, 0x1.1111111110790p-3, -0x1.ba1ba1b97cb4bp-5,
                    0x1.664f4859418f8p-6, -0x1.226e2f0e8cd57p-7, 0x1.d6d29aace0754p-9,
                    -0x1.7d8fc84159845p-10, 0x1.348353e964362p-11, -0x1.e96c50ab72e32p-13,
                    0x1.5d6ae293e2c2dp-14, -0x1.46faccb41b9d8p-16);
}

// tanh(a) = 1 - 2 / (e^(2a) + 1); near 0, where that cancels, a polynomial.
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T tanh(T x) {
  using F = Format<T>;
  constexpr T saturation = sizeof(T) == 4 ? T(10) : T(20);  // tanh rounds to 1 well before
  const T a = at_most(abs(x), saturation);
  const T z = a * a;
  const T near_zero = fma(a * z, tanh_polynomial(z), a);
  const auto [shifted, r] = reduce_by_ln2(T(2) * a, T(F::bias));
  const T scale = from_bits<T>(to_bits(shifted) << F::mantissa_bits);
  const T away = T(1) - T(2) / fma(exp_polynomial(r), scale, T(1));
  return copysign(a < kTanhSplit<T> ? near_zero : away, x);
}

// 1 / (1 + e^-x), with e = e^-|x| <= 1 so that nothing overflows and small results stay accurate:
// 1 - e / (1 + e) for x >= 0 and e (1 - e / (1 + e)) below. Subtracting the quotient, at most 1/2,
// makes less of its rounding errors than 1 / (1 + e) and e / (1 + e) do.
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T sigmoid(T x) {
  const T e = exp_in_range(-at_most(abs(x), kExpLimit<T>));
  const T scale = x < T(0) ? e : T(1);
  return fma(-scale, e / (T(1) + e), scale);
}

// 1 / d for 1 <= d <= 2. float: a division of 16 takes as long as 32 multiplications, so a quadratic
// (1 - d p(d) is a Chebyshev polynomial, at most 1/99) and two Newton steps, which square that.
[[gnu::always_inline]] BRRR_HD inline float reciprocal_to_2(float d) {
  const float guess = polynomial(d, 210.0f / 99, -144.0f / 99, 32.0f / 99);
  const float better = fma(fma(-d, guess, 1.0f), guess, guess);
  return fma(fma(-d, better, 1.0f), better, better);
}
[[gnu::always_inline]] BRRR_HD inline double reciprocal_to_2(double d) { return 1.0 / d; }

// s = sigmoid(x) and ds/dx = s (1 - s), as e / (1 + e)^2: 1 - s would cancel for large x. Made for
// x s and s + x ds/dx, to which an e below the normal range adds nothing.
template <Real T>
struct SigmoidAndSlope {
  T s, slope;
};

// A GPU moves a 16-bit element to its memory in the time of 27 instructions, fewer than e and q take by
// polynomials, and has instructions for both, wrong by two units in the last place.
#if defined(__CUDA_ARCH__)
__device__ inline float exp_by_instruction(float x) {  // and by |x| 2^-24; below the normal range 0
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * Format<float>::log2_e));
  return y;
}
__device__ inline float reciprocal_by_instruction(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#endif

template <Real T>
[[gnu::always_inline]] BRRR_HD inline SigmoidAndSlope<T> sigmoid_and_slope(T x) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 4) {
    const T e = exp_by_instruction(-abs(x)), q = reciprocal_by_instruction(T(1) + e), eq = e * q;
    return {x < T(0) ? eq : q, eq * q};
  }
#endif
  const T e = exp_below(-abs(x));
  const T q = reciprocal_to_2(T(1) + e);
  const T eq = e * q;
  return {x < T(0) ? eq : q, eq * q};
}

// ---- pow ---------------------------------------------------------------------------------------

// |x|^y = 2^(y log2|x|) in double, which has bits to spare: log2 to 2^-45 and 2^t to 2^-34.5
// leave the float result right to half a unit and a bit. ax: positive, finite.
[[gnu::always_inline]] BRRR_HD inline double pow_positive(double ax, double y) {
  using F = Format<double>;
  const std::uint64_t bits = to_bits(ax) + (F::one - F::sqrt_half);
  const std::uint64_t mantissa = bits & ((std::uint64_t(1) << F::mantissa_bits) - 1);
  const double f = from_bits<double>(mantissa + F::sqrt_half) - 1.0;
  const double e = from_bits<double>((bits >> F::mantissa_bits) | to_bits(F::two_to_mantissa)) -
                   (F::two_to_mantissa + 1023.0);
  const double s = f / (2.0 + f);
  const double log2_ax =
      fma(s,
          polynomial(s * s, 0x1.71547652b824ep+1, 0x1.ec709dc5421b7p-1, 0x1.2776c28c7c211p-1,
                     0x1.a61a345348badp-2, 0x1.479466a6de98fp-2, 0x1.21bf2a2c5a1e3p-2),
          e);
  const double t = at_least(at_most(y * log2_ax, 200.0), -200.0);  // far outside float's range
  const double magic = F::round_magic + 1023.0;
  const double shifted = t + magic;
  const double r = t - (shifted - magic);
  const double power = polynomial(
      r, 0x1.ffffffffaa6ddp-1, 0x1.62e42ff11c42bp-1, 0x1.ebfbe0a6cac41p-3, 0x1.c6b08aa67d810p-5,
      0x1.3b29da85f8bb2p-7, 0x1.5d8a75c3e9eebp-10, 0x1.446b8371b9794p-13, 0x1.fe15341f5f3d6p-17);
  return power * from_bits<double>(to_bits(shifted) << F::mantissa_bits);
}

// a >= 0. From 2^23 on every float is an integer, and infinity counts as one. The minimum is taken
// of the bits (same order): from a float ?: g++ makes a branch on a bool, which it cannot vectorise.
[[gnu::always_inline]] BRRR_HD inline bool is_integer(float a) {
  constexpr std::uint32_t limit = 0x4b000000u;  // 2^23
  const float m = from_bits<float>(to_bits(a) < limit ? to_bits(a) : limit);
  return (m + 0x1p23f) - 0x1p23f == m;
}

// C's pow: 1 for y = 0 and for x = 1, even if the other is NaN; odd integers y keep the sign of x.
[[gnu::always_inline]] BRRR_HD inline float pow(float x, float y) {
  constexpr float infinity = Format<float>::infinity;
  const float ax = abs(x), ay = abs(y);
  float power = static_cast<float>(pow_positive(double(ax), double(y)));
  power = ax == 0.0f ? (y < 0.0f ? infinity : 0.0f) : power;
  power = ax == infinity ? (y < 0.0f ? 0.0f : infinity) : power;
  const bool integer = is_integer(ay);
  const bool odd = integer & !is_integer(0.5f * ay);
  power = ((x < 0.0f) & (ax < infinity) & !integer) ? Format<float>::nan : power;
  power = ((ax == 1.0f) & integer) ? 1.0f : power;  // also (-1)^(+-infinity)
  power = from_bits<float>(to_bits(power) | (odd ? to_bits(x) & 0x80000000u : 0u));
  power = ((x != x) | (y != y)) ? x + y : power;
  return ((y == 0.0f) | (x == 1.0f)) ? 1.0f : power;
}

BRRR_HD inline double pow(double x, double y) { return ::pow(x, y); }

// ---- Activations and their derivatives ---------------------------------------------------------

// max(x, 0); NaN stays NaN, as in PyTorch.
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T relu(T x) {
  return x <= T(0) ? T(0) : x;
}

// log(1 + e^x) = max(x, 0) + log(1 + e), e = e^-|x|; as in log1p, but 1 <= u <= 2 is never special.
// Its derivative is sigmoid(x).
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T softplus(T x) {
  const T e = exp_in_range(-at_most(abs(x), kExpLimit<T>));
  const T u = T(1) + e;
  return relu(x) + log_positive(u, (e - (u - T(1))) / u);
}

// x sigmoid(x). Like PyTorch's, silu and gelu of -infinity are NaN.
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T silu(T x) {
  return x * sigmoid_and_slope(x).s;
}

// s + x s', s = sigmoid(x).
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T silu_grad(T x) {
  const auto [s, slope] = sigmoid_and_slope(x);
  return fma(x, slope, s);
}

// x Phi(x), and its derivative Phi(x) + x phi(x).
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T gelu_erf(T x) {
  return x * normal_distribution(x).cdf;
}

template <Real T>
[[gnu::always_inline]] BRRR_HD inline T gelu_erf_grad(T x) {
  const auto [cdf, density] = normal_distribution(x);
  return fma(x, density, cdf);
}

// x/2 (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3); (1 + tanh(u)) / 2 = sigmoid(2u).
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T gelu_tanh(T x) {
  const T two_u = Format<T>::sqrt_8_over_pi * fma(T(0.044715) * x * x, x, x);
  return x * sigmoid_and_slope(two_u).s;
}

// s + x s' (2u)', s = sigmoid(2u), (2u)' = sqrt(8/pi) (1 + 3 * 0.044715 x^2).
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T gelu_tanh_grad(T x) {
  const T x2 = x * x;
  const T two_u = Format<T>::sqrt_8_over_pi * fma(T(0.044715) * x2, x, x);
  const T two_u_grad = Format<T>::sqrt_8_over_pi * fma(T(3 * 0.044715), x2, T(1));
  const auto [s, slope] = sigmoid_and_slope(two_u);
  return fma(x * two_u_grad, slope, s);
}

}  // namespace brrr::math
