// Checks brrr/base/scalar_math.h: error bounds against a wider libm, special values, and that a
// vectorised loop gives the bits of one call at a time.
//
// Error is counted in units in the last place (ulp) of the exact result, with the exact result
// taken from libm in the next wider type: double for float, long double (64 bits) for double.
#include "brrr/base/scalar_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "support/sanitized.h"

namespace brrr {
namespace {

template <typename T>
using Wider = std::conditional_t<std::is_same_v<T, float>, double, long double>;

template <typename T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <typename T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

// Distance of y from the exact value, in spacings of T at that value. 1e30 for a wrong special
// value: NaN or infinity where there should be none, or the other way round.
template <typename T>
double ulp_error(T y, Wider<T> exact) {
  const double wrong = 1e30;
  if (std::isnan(exact)) return std::isnan(y) ? 0.0 : wrong;
  const T rounded = static_cast<T>(exact);
  if (std::isinf(rounded) || std::isnan(y)) return y == rounded ? 0.0 : wrong;
  if (std::isinf(y)) return std::abs(rounded) == std::numeric_limits<T>::max() ? 1.0 : wrong;
  const int lowest = std::numeric_limits<T>::min_exponent - 1;
  const int exponent = exact == 0 ? lowest : std::max(lowest, std::ilogb(exact));
  const Wider<T> ulp = std::ldexp(Wider<T>(1), exponent - std::numeric_limits<T>::digits + 1);
  return static_cast<double>(std::abs(Wider<T>(y) - exact) / ulp);
}

// The points on which a function is tested.
template <typename T>
class Points {
 public:
  // The numbers within 1000 steps on both sides of x.
  Points& around(T x) {
    T below = x, above = x;
    for (int i = 0; i < 1000; ++i) {
      points_.push_back(below);
      points_.push_back(above);
      below = std::nextafter(below, -kInfinity<T>);
      above = std::nextafter(above, kInfinity<T>);
    }
    return *this;
  }

  Points& uniform(T low, T high, int count = 200000) {
    std::uniform_real_distribution<T> value(low, high);
    for (int i = 0; i < count; ++i) points_.push_back(value(random_));
    return *this;
  }

  // Bit patterns over the whole type: every 997th of float, as many random ones of double.
  Points& all_patterns();

  // The numbers closest to multiples of pi/2, where sin or cos nearly vanishes.
  Points& near_multiples_of_half_pi(T limit) {
    const long double half_pi = 1.57079632679489661923132169163975144L;
    const auto last = static_cast<long>(limit / half_pi);
    for (long k = 1; k <= last; k += 1 + k / 40000) {
      const T x = static_cast<T>(k * half_pi);
      for (T near : {std::nextafter(x, T(0)), x, std::nextafter(x, limit)}) {
        if (near <= limit) points_.insert(points_.end(), {near, -near});
      }
    }
    return *this;
  }

  // Keeps |x| <= limit.
  Points& within(T limit) {
    std::erase_if(points_, [limit](T x) { return !(std::abs(x) <= limit); });
    return *this;
  }

  std::vector<T> list() const { return points_; }

 private:
  std::vector<T> points_;
  std::mt19937_64 random_{7};
};

template <>
Points<float>& Points<float>::all_patterns() {
  constexpr std::uint64_t kStride = kIsSanitized ? 9973 : 997;  // prime, so that all bits move
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += kStride) {
    points_.push_back(math::from_bits<float>(static_cast<std::uint32_t>(bits)));
  }
  return *this;
}

template <>
Points<double>& Points<double>::all_patterns() {
  for (int64_t i = 0; i < tenth_if_sanitized(500000); ++i)
    points_.push_back(math::from_bits<double>(random_()));
  return *this;
}

template <typename T, typename Function, typename Reference>
void expect_within(double bound_ulp, Function function, Reference reference,
                   const Points<T>& points) {
  double worst_ulp = 0.0;
  T worst_x = 0;
  for (T x : points.list()) {
    const double error = ulp_error<T>(function(x), reference(static_cast<Wider<T>>(x)));
    if (error > worst_ulp) {
      worst_ulp = error;
      worst_x = x;
    }
  }
  ::testing::Test::RecordProperty("max_ulp", std::to_string(worst_ulp));
  ::testing::Test::RecordProperty("at", std::to_string(static_cast<long double>(worst_x)));
  EXPECT_LE(worst_ulp, bound_ulp) << "at x = " << std::hexfloat << worst_x << ", got "
                                  << function(worst_x) << ", exact "
                                  << reference(static_cast<Wider<T>>(worst_x));
}

template <typename T>
class ScalarMath : public ::testing::Test {
 protected:
  static constexpr bool is_float = std::is_same_v<T, float>;
  static constexpr T log_max = is_float ? T(88.722839) : T(709.782712893384);
  static constexpr T log_min_subnormal = is_float ? T(-103.972084) : T(-745.1332191019412);
  static constexpr T tiny = std::numeric_limits<T>::denorm_min();
  static constexpr T min_normal = std::numeric_limits<T>::min();
  static constexpr T max = std::numeric_limits<T>::max();
  static constexpr T infinity = kInfinity<T>;
  static constexpr T nan = kNan<T>;
};

using RealTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ScalarMath, RealTypes);

// Equal, and of the same sign when zero.
template <typename T>
bool same(T a, T b) {
  return (a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b));
}

// ---- Error bounds ------------------------------------------------------------------------------

TYPED_TEST(ScalarMath, ExpError) {
  using T = TypeParam;
  const auto points = Points<T>()
                          .all_patterns()
                          .uniform(this->log_min_subnormal, this->log_max)
                          .uniform(T(-1), T(1))
                          .around(T(0))
                          .around(this->log_max)
                          .around(this->log_min_subnormal)
                          .around(std::log(this->min_normal));
  expect_within<T>(
      1.0, [](T x) { return math::exp(x); }, [](auto x) { return std::exp(x); }, points);
}

TYPED_TEST(ScalarMath, Expm1Error) {
  using T = TypeParam;
  const auto points = Points<T>()
                          .all_patterns()
                          .uniform(T(-40), this->log_max)
                          .uniform(T(-2), T(2))
                          .around(T(0))
                          .around(this->min_normal)
                          .around(this->log_max);
  expect_within<T>(
      2.0, [](T x) { return math::expm1(x); }, [](auto x) { return std::expm1(x); }, points);
}

TYPED_TEST(ScalarMath, LogError) {
  using T = TypeParam;
  const auto points = Points<T>()
                          .all_patterns()
                          .uniform(T(0), T(4))
                          .around(T(0))
                          .around(T(0.5))
                          .around(std::sqrt(T(0.5)))
                          .around(T(1))
                          .around(std::sqrt(T(2)))
                          .around(this->min_normal)
                          .around(this->max);
  expect_within<T>(
      1.0, [](T x) { return math::log(x); }, [](auto x) { return std::log(x); }, points);
}

TYPED_TEST(ScalarMath, Log1pError) {
  using T = TypeParam;
  const auto points = Points<T>()
                          .all_patterns()
                          .uniform(T(-1), T(3))
                          .uniform(T(-1e-3), T(1e-3))
                          .around(T(-1))
                          .around(std::sqrt(T(0.5)) - T(1))
                          .around(T(0))
                          .around(std::sqrt(T(2)) - T(1))
                          .around(T(1))
                          .around(this->max);
  expect_within<T>(
      2.0, [](T x) { return math::log1p(x); }, [](auto x) { return std::log1p(x); }, points);
}

TYPED_TEST(ScalarMath, TanhError) {
  using T = TypeParam;
  const auto points = Points<T>()
                          .all_patterns()
                          .uniform(T(-2), T(2))
                          .uniform(T(-25), T(25))
                          .around(T(0))
                          .around(math::kTanhSplit<T>)
                          .around(T(10))
                          .around(T(20));
  expect_within<T>(
      2.0, [](T x) { return math::tanh(x); }, [](auto x) { return std::tanh(x); }, points);
}

TYPED_TEST(ScalarMath, SigmoidError) {
  using T = TypeParam;
  const auto points = Points<T>()
                          .all_patterns()
                          .uniform(T(-2), T(2))
                          .uniform(this->log_min_subnormal, -this->log_min_subnormal)
                          .around(T(0))
                          .around(this->log_min_subnormal);
  expect_within<T>(
      2.0, [](T x) { return math::sigmoid(x); },
      [](auto x) { return decltype(x)(1) / (decltype(x)(1) + std::exp(-x)); }, points);
}

// From its smallest argument on, as good as exp; below it, exactly 0.
TYPED_TEST(ScalarMath, ExpBelowError) {
  using T = TypeParam;
  const T smallest = sizeof(T) == 4 ? T(-87.3) : T(-708.3);
  expect_within<T>(
      1.0, [](T x) { return math::exp_below(x); }, [](auto x) { return std::exp(x); },
      Points<T>().uniform(T(-2), T(0)).uniform(smallest, T(0)));
  EXPECT_EQ(math::exp_below(T(0)), T(1));
  for (T x : {2 * smallest, -this->max, -this->infinity})
    EXPECT_TRUE(same(math::exp_below(x), T(0)));
  EXPECT_TRUE(std::isnan(math::exp_below(this->nan)));
}

// Relative error of at most one unit: a product with it stays within two.
TYPED_TEST(ScalarMath, ReciprocalTo2Error) {
  using T = TypeParam;
  for (T d : Points<T>().uniform(T(1), T(2), 100000).around(T(1)).list()) {
    if (d < T(1) || d > T(2)) continue;
    EXPECT_NEAR(math::reciprocal_to_2(d) * Wider<T>(d), 1, std::numeric_limits<T>::epsilon());
  }
}

TYPED_TEST(ScalarMath, ErfError) {
  using T = TypeParam;
  const auto points = Points<T>()
                          .all_patterns()
                          .uniform(T(-2), T(2))
                          .uniform(T(-7), T(7))
                          .around(T(0))
                          .around(T(1))
                          .around(math::kErfMax<T>);
  expect_within<T>(
      this->is_float ? 1.5 : 2.5, [](T x) { return math::erf(x); },
      [](auto x) { return std::erf(x); }, points);
}

// To the last subnormal: 1 - erf(x) would have no digit left from x = 4 (6) on.
TYPED_TEST(ScalarMath, ErfcError) {
  using T = TypeParam;
  const T underflow = this->is_float ? T(10.05) : T(27.2);
  const auto points = Points<T>()
                          .all_patterns()
                          .uniform(T(-1), T(1))
                          .uniform(T(-6), underflow)
                          .around(T(0))
                          .around(underflow);
  expect_within<T>(
      this->is_float ? 5.5 : 6.5, [](T x) { return math::erfc(x); },
      [](auto x) { return std::erfc(x); }, points);
}

TYPED_TEST(ScalarMath, SinError) {
  using T = TypeParam;
  const auto points = Points<T>()
                          .all_patterns()
                          .uniform(T(-10), T(10))
                          .uniform(-math::kTrigLimit<T>, math::kTrigLimit<T>)
                          .near_multiples_of_half_pi(math::kTrigLimit<T>)
                          .around(T(0));
  expect_within<T>(
      2.1, [](T x) { return math::sin(x); }, [](auto x) { return std::sin(x); }, points);
}

TYPED_TEST(ScalarMath, CosError) {
  using T = TypeParam;
  const auto points = Points<T>()
                          .all_patterns()
                          .uniform(T(-10), T(10))
                          .uniform(-math::kTrigLimit<T>, math::kTrigLimit<T>)
                          .near_multiples_of_half_pi(math::kTrigLimit<T>)
                          .around(T(0));
  expect_within<T>(
      2.1, [](T x) { return math::cos(x); }, [](auto x) { return std::cos(x); }, points);
}

TYPED_TEST(ScalarMath, SinAndCosNeverExceedOne) {
  using T = TypeParam;
  const auto points = Points<T>()
                          .uniform(T(-10), T(10))
                          .uniform(-math::kTrigLimit<T>, math::kTrigLimit<T>)
                          .near_multiples_of_half_pi(math::kTrigLimit<T>);
  for (T x : points.list()) {
    ASSERT_LE(std::abs(math::sin(x)), T(1)) << x;
    ASSERT_LE(std::abs(math::cos(x)), T(1)) << x;
  }
}

TYPED_TEST(ScalarMath, SqrtAndRsqrtError) {
  using T = TypeParam;
  const auto points = Points<T>().all_patterns().around(T(0)).around(T(1)).around(this->max);
  expect_within<T>(
      0.5, [](T x) { return math::sqrt(x); }, [](auto x) { return std::sqrt(x); }, points);
  expect_within<T>(
      1.5, [](T x) { return math::rsqrt(x); }, [](auto x) { return decltype(x)(1) / std::sqrt(x); },
      points);
}

TEST(ScalarMathPow, ErrorOverBothArguments) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> log2_result(-152.0, 130.0);
  double worst_ulp = 0.0;
  float worst_x = 0.0f, worst_y = 0.0f;
  const auto check = [&](float x, float y) {
    const double error = ulp_error<float>(math::pow(x, y), std::pow(double(x), double(y)));
    if (error <= worst_ulp) return;
    worst_ulp = error;
    worst_x = x;
    worst_y = y;
  };
  for (int64_t i = 0; i < tenth_if_sanitized(1000000); ++i) {
    const float x = math::from_bits<float>(static_cast<std::uint32_t>(random()));
    check(x, math::from_bits<float>(static_cast<std::uint32_t>(random())));
    // y such that the result is neither 0 nor infinity, with x anywhere and with x near 1
    check(std::abs(x), static_cast<float>(log2_result(random) / std::log2(std::abs(double(x)))));
    const float near_1 = 1.0f + 1e-4f * (static_cast<float>(random() % 20001) / 10000.0f - 1.0f);
    check(near_1, static_cast<float>(log2_result(random) / std::log2(double(near_1))));
    check(-near_1, static_cast<float>(static_cast<int>(random() % 2001) - 1000));
  }
  RecordProperty("max_ulp", std::to_string(worst_ulp));
  EXPECT_LE(worst_ulp, 0.6) << "at " << std::hexfloat << worst_x << ", " << worst_y;
}

// The derived functions are compositions. gelu_tanh and the derivatives are bounded by a few units of
// the largest term, not of the (possibly tiny) result.
TYPED_TEST(ScalarMath, ActivationsError) {
  using T = TypeParam;
  using W = Wider<T>;
  const W unit = std::numeric_limits<T>::epsilon();
  const W root_half = std::sqrt(W(0.5)), pi = std::acos(W(-1));
  const auto phi = [&](W x) { return std::exp(-x * x / 2) / std::sqrt(2 * pi); };
  const auto cdf = [&](W x) { return std::erfc(-x * root_half) / 2; };
  const auto sigmoid = [](W x) { return 1 / (1 + std::exp(-x)); };
  for (T v : Points<T>().uniform(T(-30), T(30), 100000).around(T(0)).list()) {
    const W x = v, size = 1 + std::abs(x);
    const W s = sigmoid(x), c = std::sqrt(8 / pi), k = W(T(0.044715));
    const W s2 = sigmoid(c * (x + k * x * x * x));
    const W slope = s * sigmoid(-x), slope_2 = s2 * sigmoid(-c * (x + k * x * x * x));
    EXPECT_NEAR(math::silu(v), x * s, 3 * unit * std::abs(x * s) + this->tiny);
    EXPECT_NEAR(math::silu_grad(v), s + x * slope, 2 * unit);
    EXPECT_NEAR(math::softplus(v), std::log1p(std::exp(x)), 2 * unit * std::log1p(std::exp(x)));
    const W lost = size * this->min_normal;
    // Relative: 4 units found, of the quotient and the polynomial in erfc_scaled, the exponential and
    // three products. An exponential below the normal range is 0, and |x| times it is lost.
    EXPECT_NEAR(math::gelu_erf(v), x * cdf(x), 5 * unit * std::abs(x * cdf(x)) + lost);
    EXPECT_NEAR(math::gelu_erf_grad(v), cdf(x) + x * phi(x),
                4 * unit * (cdf(x) + std::abs(x) * phi(x)) + lost);
    EXPECT_NEAR(math::gelu_tanh(v), x * s2, 2 * unit * size);
    EXPECT_NEAR(math::gelu_tanh_grad(v), s2 + x * slope_2 * c * (1 + 3 * k * x * x), 4 * unit);
  }
}

// ---- Special values ----------------------------------------------------------------------------

TYPED_TEST(ScalarMath, ExpAndExpm1SpecialValues) {
  using T = TypeParam;
  EXPECT_TRUE(std::isnan(math::exp(this->nan)));
  EXPECT_EQ(math::exp(this->infinity), this->infinity);
  EXPECT_EQ(math::exp(this->max), this->infinity);
  EXPECT_TRUE(same(math::exp(-this->infinity), T(0)));
  EXPECT_TRUE(same(math::exp(-this->max), T(0)));
  EXPECT_EQ(math::exp(T(0)), T(1));
  EXPECT_EQ(math::exp(-T(0)), T(1));
  const T subnormal = math::exp(this->log_min_subnormal + T(3));
  EXPECT_TRUE(subnormal > 0 && subnormal < this->min_normal) << "underflow is gradual";

  EXPECT_TRUE(std::isnan(math::expm1(this->nan)));
  EXPECT_EQ(math::expm1(this->infinity), this->infinity);
  EXPECT_EQ(math::expm1(-this->infinity), T(-1));
  EXPECT_EQ(math::expm1(-this->max), T(-1));
  for (T x : {T(0), -T(0), this->tiny, -this->tiny}) EXPECT_TRUE(same(math::expm1(x), x)) << x;
}

TYPED_TEST(ScalarMath, LogAndLog1pSpecialValues) {
  using T = TypeParam;
  EXPECT_TRUE(std::isnan(math::log(this->nan)));
  EXPECT_EQ(math::log(this->infinity), this->infinity);
  EXPECT_EQ(math::log(T(0)), -this->infinity);
  EXPECT_EQ(math::log(-T(0)), -this->infinity);
  for (T x : {T(-1), -this->tiny, -this->max, -this->infinity}) {
    EXPECT_TRUE(std::isnan(math::log(x))) << x;
  }
  EXPECT_TRUE(same(math::log(T(1)), T(0)));

  EXPECT_TRUE(std::isnan(math::log1p(this->nan)));
  EXPECT_EQ(math::log1p(this->infinity), this->infinity);
  EXPECT_EQ(math::log1p(T(-1)), -this->infinity);
  EXPECT_TRUE(std::isnan(math::log1p(T(-1.5))));
  EXPECT_TRUE(std::isnan(math::log1p(-this->infinity)));
  for (T x : {T(0), -T(0), this->tiny, -this->tiny}) EXPECT_TRUE(same(math::log1p(x), x)) << x;
}

TYPED_TEST(ScalarMath, OddFunctionsKeepZeroAndSaturate) {
  using T = TypeParam;
  for (T x : {T(0), -T(0), this->min_normal, -this->min_normal}) {
    EXPECT_TRUE(same(math::tanh(x), x)) << x;
    EXPECT_TRUE(same(math::sin(x), x)) << x;
  }
  EXPECT_TRUE(same(math::erf(T(0)), T(0)));
  EXPECT_TRUE(same(math::erf(-T(0)), -T(0)));
  for (T x : {T(30), this->max, this->infinity}) {
    EXPECT_EQ(math::tanh(x), T(1));
    EXPECT_EQ(math::tanh(-x), T(-1));
    EXPECT_EQ(math::erf(x), T(1));
    EXPECT_EQ(math::erf(-x), T(-1));
  }
  EXPECT_TRUE(std::isnan(math::tanh(this->nan)));
  EXPECT_TRUE(std::isnan(math::erf(this->nan)));
}

TYPED_TEST(ScalarMath, ErfcSpecialValues) {
  using T = TypeParam;
  EXPECT_EQ(math::erfc(T(0)), T(1));
  EXPECT_EQ(math::erfc(-T(0)), T(1));
  for (T x : {T(30), this->max, this->infinity}) {
    EXPECT_TRUE(same(math::erfc(x), T(0)));
    EXPECT_EQ(math::erfc(-x), T(2));
  }
  EXPECT_TRUE(std::isnan(math::erfc(this->nan)));
}

TYPED_TEST(ScalarMath, SinAndCosSpecialValues) {
  using T = TypeParam;
  EXPECT_EQ(math::cos(T(0)), T(1));
  EXPECT_EQ(math::cos(-T(0)), T(1));
  for (T x : {this->nan, this->infinity, -this->infinity}) {
    EXPECT_TRUE(std::isnan(math::sin(x)));
    EXPECT_TRUE(std::isnan(math::cos(x)));
    EXPECT_TRUE(std::isnan(math::sin_reduced(x)));
    EXPECT_TRUE(std::isnan(math::cos_reduced(x)));
  }
}

TYPED_TEST(ScalarMath, SinAndCosEqualTheirReducedFormsUpToTheLimit) {
  using T = TypeParam;
  const T limit = math::kTrigLimit<T>;
  for (T x : Points<T>().uniform(-limit, limit).around(limit).within(limit).list()) {
    ASSERT_EQ(math::to_bits(math::sin(x)), math::to_bits(math::sin_reduced(x))) << x;
    ASSERT_EQ(math::to_bits(math::cos(x)), math::to_bits(math::cos_reduced(x))) << x;
  }
}

TYPED_TEST(ScalarMath, SqrtAndSigmoidSpecialValues) {
  using T = TypeParam;
  EXPECT_TRUE(std::isnan(math::sqrt(T(-1))));
  EXPECT_TRUE(same(math::sqrt(-T(0)), -T(0)));
  EXPECT_EQ(math::rsqrt(T(0)), this->infinity);
  EXPECT_EQ(math::rsqrt(-T(0)), -this->infinity);
  EXPECT_TRUE(same(math::rsqrt(this->infinity), T(0)));
  EXPECT_TRUE(std::isnan(math::rsqrt(T(-1))));

  EXPECT_EQ(math::sigmoid(T(0)), T(0.5));
  EXPECT_EQ(math::sigmoid(this->infinity), T(1));
  EXPECT_TRUE(same(math::sigmoid(-this->infinity), T(0)));
  EXPECT_TRUE(std::isnan(math::sigmoid(this->nan)));
}

TYPED_TEST(ScalarMath, ActivationsSpecialValues) {
  using T = TypeParam;
  EXPECT_TRUE(std::isnan(math::relu(this->nan)));
  EXPECT_EQ(math::relu(this->infinity), this->infinity);
  EXPECT_TRUE(same(math::relu(-this->infinity), T(0)));
  EXPECT_TRUE(same(math::relu(-T(0)), T(0)));
  EXPECT_EQ(math::relu(T(2.5)), T(2.5));

  EXPECT_TRUE(std::isnan(math::softplus(this->nan)));
  EXPECT_EQ(math::softplus(this->infinity), this->infinity);
  EXPECT_TRUE(same(math::softplus(-this->infinity), T(0)));
  for (T x : {this->max, this->infinity}) {
    EXPECT_EQ(math::silu(x), x);
    EXPECT_EQ(math::gelu_erf(x), x);
    EXPECT_EQ(math::gelu_tanh(x), x);
  }
  EXPECT_TRUE(std::isnan(math::silu(this->nan)));
  EXPECT_TRUE(std::isnan(math::gelu_erf(this->nan)));
  EXPECT_TRUE(std::isnan(math::gelu_tanh(this->nan)));
}

TEST(ScalarMathPow, SpecialValuesAreThoseOfLibm) {
  const float infinity = kInfinity<float>, max = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::denorm_min();
  std::vector<float> values = {0.0f, tiny,     0.5f,       1.0f,        1.5f,        2.0f,
                               3.0f, 4.0f,     8388607.0f, 8388609.0f,  16777216.0f, 33.5f,
                               max,  infinity, 1e-3f,      0.99999994f, 16777215.0f};
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  values.push_back(kNan<float>);
  for (float x : values) {
    for (float y : values) {
      const float expected = static_cast<float>(std::pow(double(x), double(y)));
      const float got = math::pow(x, y);
      const bool near = std::isfinite(expected) && expected != 0.0f &&
                        std::abs(got - expected) <= 2e-7f * std::abs(expected);
      EXPECT_TRUE(same(got, expected) || near)
          << x << " ^ " << y << ": " << got << ", libm " << expected;
    }
  }
}

// ---- Vector code gives the same bits -----------------------------------------------------------

#if defined(__x86_64__)

// One loop body compiled three ways. optimize("O3") lets g++ vectorise it in an -O1 build as well;
// flatten inlines the lambda, without which there is nothing to vectorise.
template <typename T, typename Function>
[[gnu::noinline]] T call_once(T x, Function function) {
  return function(x);
}

template <typename T, typename Function>
[[gnu::noinline, gnu::flatten, gnu::target("avx2,fma"), gnu::optimize("O3")]] void loop_avx2(
    T* __restrict y, const T* __restrict x, std::size_t count, Function function) {
  for (std::size_t i = 0; i < count; ++i) y[i] = function(x[i]);
}

template <typename T, typename Function>
[[gnu::noinline, gnu::flatten, gnu::target("avx2,fma,avx512f,avx512dq,avx512bw,avx512vl"),
  gnu::optimize("O3")]] void
loop_avx512(T* __restrict y, const T* __restrict x, std::size_t count, Function function) {
  for (std::size_t i = 0; i < count; ++i) y[i] = function(x[i]);
}

// The bits of y, with one pattern for every NaN: x86 picks the payload by operand order.
template <typename T>
math::BitsOf<T> value_bits(T y) {
  return math::to_bits(std::isnan(y) ? kNan<T> : y);
}

template <typename T, typename Function>
void expect_same_bits(const char* name, const std::vector<T>& x, Function function) {
  std::vector<T> y(x.size());
  const auto compare = [&](const char* target) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(value_bits(y[i]), value_bits(call_once(x[i], function)))
          << name << "(" << std::hexfloat << x[i] << ") in an " << target << " loop";
    }
  };
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    loop_avx2(y.data(), x.data(), x.size(), function);
    compare("AVX2");
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    loop_avx512(y.data(), x.data(), x.size(), function);
    compare("AVX-512");
  }
}

TYPED_TEST(ScalarMath, VectorLoopsGiveTheBitsOfSingleCalls) {
  using T = TypeParam;
  Points<T> points;
  points.uniform(T(-100), T(100), 20001).uniform(T(-2), T(2), 20001).around(T(0)).around(T(1));
  points.around(this->log_max).around(this->min_normal).around(this->infinity);
  std::vector<T> x = points.list();
  std::mt19937_64 random(3);
  for (int i = 0; i < 50000; ++i) {
    x.push_back(math::from_bits<T>(static_cast<math::BitsOf<T>>(random())));
  }
  x.insert(x.end(), {this->nan, -this->infinity, this->infinity, -T(0), this->tiny, -this->max});

  expect_same_bits("exp", x, [](T v) { return math::exp(v); });
  expect_same_bits("expm1", x, [](T v) { return math::expm1(v); });
  expect_same_bits("log", x, [](T v) { return math::log(v); });
  expect_same_bits("log1p", x, [](T v) { return math::log1p(v); });
  expect_same_bits("tanh", x, [](T v) { return math::tanh(v); });
  expect_same_bits("sigmoid", x, [](T v) { return math::sigmoid(v); });
  expect_same_bits("erf", x, [](T v) { return math::erf(v); });
  expect_same_bits("erfc", x, [](T v) { return math::erfc(v); });
  expect_same_bits("sin_reduced", x, [](T v) { return math::sin_reduced(v); });
  expect_same_bits("cos_reduced", x, [](T v) { return math::cos_reduced(v); });
  expect_same_bits("sqrt", x, [](T v) { return math::sqrt(v); });
  expect_same_bits("rsqrt", x, [](T v) { return math::rsqrt(v); });
  expect_same_bits("relu", x, [](T v) { return math::relu(v); });
  expect_same_bits("softplus", x, [](T v) { return math::softplus(v); });
  expect_same_bits("silu", x, [](T v) { return math::silu(v); });
  expect_same_bits("silu_grad", x, [](T v) { return math::silu_grad(v); });
  expect_same_bits("gelu_erf", x, [](T v) { return math::gelu_erf(v); });
  expect_same_bits("gelu_erf_grad", x, [](T v) { return math::gelu_erf_grad(v); });
  expect_same_bits("gelu_tanh", x, [](T v) { return math::gelu_tanh(v); });
  expect_same_bits("gelu_tanh_grad", x, [](T v) { return math::gelu_tanh_grad(v); });
  if constexpr (std::is_same_v<T, float>) {
    expect_same_bits("pow", x, [](T v) { return math::pow(v, v + 0.5f); });
  }
}

#endif  // defined(__x86_64__)

}  // namespace
}  // namespace brrr
