// erf, erfc and the normal distribution: see scalar_math.h.
#pragma once

#include "brrr/base/scalar_exp_log.h"

namespace brrr::math {

// ---- erf ---------------------------------------------------------------------------------------

// erf(x) = x + x P(x^2) for 0 <= x <= 1, and 1 - q(x)^n beyond, n = 4 (float) or 8 (double): the
// n-th root of erfc is so flat that a polynomial and two or three squarings replace the usual
// exp(-x^2) times something. The squarings multiply q's rounding error by n, but erfc(1) = 0.16.
[[gnu::always_inline]] BRRR_HD inline float erf_polynomial(float z) {  // 2^-29.4
  return polynomial(z, 0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2ce6p-4f, -0x1.b7f71ap-6f,
                    0x1.53f224p-8f, -0x1.a3515ep-11f, 0x1.4771fep-14f);
}

[[gnu::always_inline]] BRRR_HD inline double erf_polynomial(double z) {  // 2^-56.0
  return polynomial(z, 0x1.06eba8214db68p-3, -0x1.812746b03799dp-2, 0x1.ce2f21a03f8a1p-4,
                    -0x1.b82ce311a89d5p-6, 0x1.565bcceeab1f2p-8, -0x1.c02daeacfcdf5p-11,
                    0x1.f9a295782f54ep-14, -0x1.f4c8171a59db8p-17, 0x1.b96a378eb82c9p-20,
                    -0x1.5b84377c29358p-23, 0x1.d39b4603d1aa7p-27, -0x1.a159fc12c591fp-31);
}

// erfc(a) for 1 <= a <= kErfMax, beyond which erf rounds to 1, as the square of the result.
template <Real T>
inline constexpr T kErfMax = sizeof(T) == 4 ? T(3.93) : T(5.95);

[[gnu::always_inline]] BRRR_HD inline float erfc_square_root(float a) {  // 2^-26.8 of erf
  const float q = polynomial(a, 0x1.008e8ap0f, -0x1.2c9e2cp-2f, -0x1.7e5684p-4f, -0x1.1e7e88p-6f,
                             0x1.66f638p-5f, -0x1.a1ecd2p-7f, 0x1.976b14p-11f, 0x1.74d45ap-13f,
                             -0x1.75732ep-16f);
  return q * q;
}

[[gnu::always_inline]] BRRR_HD inline double erfc_square_root(double a) {  // 2^-55.6 of erf
  const double q = polynomial(
      a - 2.0, 0x1.05d540b4dd09dp-1, -0x1.2134811d0d8d4p-2, 0x1.3647ddf8a8730p-6,
      0x1.19d72f2d5c420p-6, -0x1.6f8e3aa1d50efp-9, -0x1.57d9694230cffp-11, 0x1.86f8ba680231bp-13,
      0x1.dead6fdb33cc0p-18, -0x1.90de1e9729331p-18, 0x1.796a577e9f2abp-23, 0x1.e83ca75c38e95p-24,
      -0x1.7b62fdab15977p-30, -0x1.15d9086f385dcp-28, 0x1.0513f4c4ce44fp-31, 0x1.25eb101671126p-35,
      -0x1.411239343daccp-36, 0x1.55f356b207070p-38, -0x1.097b87186178dp-40, 0x1.6d97751a386e1p-44);
  const double q_2 = q * q;
  return q_2 * q_2;
}

template <Real T>
[[gnu::always_inline]] BRRR_HD inline T erf(T x) {
  const T a = at_most(abs(x), kErfMax<T>);
  const T near_zero = fma(a, erf_polynomial(a * a), a);
  const T root = erfc_square_root(a);
  const T away = fma(-root, root, T(1));
  return copysign(a < T(1) ? near_zero : away, x);
}

// ---- erfc --------------------------------------------------------------------------------------

// e^(a^2) erfc(a) = r P(1 - 2 k r) with r = 1 / (a + k), for 0 <= a where erfc(a) is not yet 0. It falls
// as 1/a does, and r too; k puts the argument of P between -1 and 0.9. A larger k would need fewer
// coefficients, but makes more of the rounding of r near a = 0.
[[gnu::always_inline]] BRRR_HD inline float erfc_scaled(float a) {  // 2^-28.1
  const float r = 1.0f / (a + 2.0f);
  return r * polynomial(fma(-4.0f, r, 1.0f), 0x1.058672p0f, -0x1.5fd386p-1f, 0x1.1e2ddap-2f,
                        -0x1.2a87f6p-5f, -0x1.60598ap-6f, 0x1.a86734p-8f, 0x1.916bf4p-9f,
                        -0x1.b43d76p-11f, -0x1.36ac06p-11f, 0x1.89c1e6p-15f, 0x1.236b76p-14f);
}

[[gnu::always_inline]] BRRR_HD inline double erfc_scaled(double a) {  // 2^-57.4
  const double r = 1.0 / (a + 2.5);
  return r * polynomial(fma(-5.0, r, 1.0), 0x1.0dd50785280a5p0, -0x1.9bfb53c4039d7p-1,
                        0x1.d0cedcb8c902ap-2, -0x1.5eb8eba1dfd45p-3, 0x1.d0acf691fb2d1p-6,
                        0x1.1305f56563d5dp-7, -0x1.3bcdce3bc06f2p-8, -0x1.cc8b120559b67p-12,
                        0x1.7069f508836e7p-11, 0x1.e91ef23e5faf6p-15, -0x1.d84ca711f5225p-14,
                        -0x1.47b06090457f6p-16, 0x1.3219bd978b423p-16, 0x1.c5232cdfa9506p-18,
                        -0x1.39533f0922295p-19, -0x1.06ab9eca61457p-19, -0x1.1cdcc1035be52p-30,
                        0x1.d6c2c95e6bbdfp-22, 0x1.183167d8e6d2ep-23, -0x1.0133d0a2b331dp-24,
                        -0x1.848298958c3f9p-25, -0x1.0d35ef32ce344p-30, 0x1.c9e6cf80afd97p-28,
                        0x1.c8c0a5150771ap-30);
}

// erfc(a) = e^(-a^2) erfc_scaled(a), and 2 - erfc(a) for -a: 1 - erf(a) would cancel. What rounding
// a^2 loses, up to half a unit of 100 (700), is put back to first order: e^(-s - c) = e^(-s) (1 - c).
template <Real T>
[[gnu::always_inline]] BRRR_HD inline T erfc(T x) {
  constexpr T underflow = sizeof(T) == 4 ? T(10.1) : T(27.3);  // erfc is less than any number there
  const T a = at_most(abs(x), underflow);
  const T s = a * a;
  const T c = fma(a, a, -s);
  const T e = exp_in_range(-s);
  const T tail = fma(-c, e, e) * erfc_scaled(a);
  return x < T(0) ? T(2) - tail : tail;
}

// ---- the normal distribution -------------------------------------------------------------------

// Phi(x) = erfc(-x / sqrt 2) / 2 and its density phi(x) = e^(-x^2/2) / sqrt(2 pi), which share their
// exponential; x^2 is taken before the division by 2, so the rounding of x / sqrt 2 does not reach it.
// Where the exponential is below the normal range both are 0 (or Phi 1).
template <Real T>
struct NormalDistribution {
  T cdf, density;
};

template <Real T>
[[gnu::always_inline]] BRRR_HD inline NormalDistribution<T> normal_distribution(T x) {
  using F = Format<T>;
  constexpr T underflow = sizeof(T) == 4 ? T(14) : T(38);  // e^(-x^2/2) is 0 there, see exp_below
  const T a = at_most(abs(x), underflow);
  const T s = a * a;
  const T c = fma(a, a, -s);
  const T e = exp_below(T(-0.5) * s);
  const T exact = fma(T(-0.5) * c, e, e);
  const T tail = T(0.5) * exact * erfc_scaled(a * F::sqrt_half_value);
  return {x > T(0) ? T(1) - tail : tail, F::inv_sqrt_2pi * exact};
}

}  // namespace brrr::math
