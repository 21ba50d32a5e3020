// Seeds are fixed, so a statistical check passes always or never; bounds are five standard errors,
// or the 0.1 % point of the Kolmogorov-Smirnov distance.
#include "brrr/ops/random/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "brrr/base/thread_pool.h"
#include "brrr/kernels/cpu/random/random_cpu.h"
#include "brrr/ops/create/copy.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kCount = 200'000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const RandomKey kKey{.seed = 42, .stream = stream_id("test"), .draw = 3};

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }

double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (double value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

double variance_of(const std::vector<double>& x) {
  const double mean = mean_of(x);
  double sum = 0;
  for (double value : x) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(x.size());
}

double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const double mean_x = mean_of(x), mean_y = mean_of(y);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - mean_x) * (y[i] - mean_y);
  return sum / static_cast<double>(x.size()) / std::sqrt(variance_of(x) * variance_of(y));
}

// The largest distance between the empirical distribution and `cdf`, in units of 1 / sqrt(n).
template <typename Cdf>
double distance_to(std::vector<double> x, Cdf cdf) {
  std::sort(x.begin(), x.end());
  const double n = static_cast<double>(x.size());
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = cdf(x[i]);
    largest = std::max({largest, std::fabs(expected - static_cast<double>(i) / n),
                        std::fabs(expected - static_cast<double>(i + 1) / n)});
  }
  return largest * std::sqrt(n);
}
constexpr double kDistance = 1.95;  // exceeded by chance once in a thousand

TEST(Uniform, HasTheRightMomentsAndDistribution) {
  const std::vector<double> x = values(uniform({kCount}, kKey, {-1, 3}, {.dtype = DType::f64}));
  const double n = kCount;
  EXPECT_NEAR(mean_of(x), 1, 5 * 4 / std::sqrt(12 * n));
  EXPECT_NEAR(variance_of(x), 16.0 / 12, 5 * 16 / std::sqrt(180 * n));
  EXPECT_LT(distance_to(x, [](double v) { return (v + 1) / 4; }), kDistance);
}

// 2 - 2^-53 rounds to 2 in every smaller dtype, and bf16 has few values below 2.
TEST(Uniform, NeverReachesTheUpperBoundEvenAfterRounding) {
  for (DType dtype :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    const std::vector<double> x = values(uniform({kCount}, kKey, {1, 2}, {.dtype = dtype}));
    const auto [least, most] = std::minmax_element(x.begin(), x.end());
    EXPECT_GE(*least, 1) << to_text(dtype);
    EXPECT_LT(*most, 2) << to_text(dtype);
  }
  // 0.1 is not a bf16 value: the nearest one, 0.10009765625, lies above it.
  const std::vector<double> x = values(uniform({kCount}, kKey, {0, 0.1}, {.dtype = DType::bf16}));
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 0.1);
}

TEST(Normal, HasTheRightMomentsAndDistribution) {
  const std::vector<double> x =
      values(normal({kCount}, kKey, {.mean = 2, .std = 3}, {.dtype = DType::f64}));
  const double n = kCount;
  EXPECT_NEAR(mean_of(x), 2, 5 * 3 / std::sqrt(n));
  EXPECT_NEAR(variance_of(x), 9, 5 * 9 * std::sqrt(2 / n));
  EXPECT_LT(distance_to(x, [](double v) { return kernels::normal_cdf((v - 2) / 3); }), kDistance);
  double fourth = 0;
  for (double v : x) fourth += std::pow((v - 2) / 3, 4) / n;
  EXPECT_NEAR(fourth, 3, 5 * std::sqrt(96 / n));
}

TEST(Normal, PairsOfNeighboursAreIndependent) {
  const std::vector<double> x = values(normal({2 * kCount}, kKey, {}, {.dtype = DType::f64}));
  std::vector<double> even, odd, even_squared, odd_squared;
  for (size_t i = 0; i < x.size(); i += 2) {
    even.push_back(x[i]), odd.push_back(x[i + 1]);
    even_squared.push_back(x[i] * x[i]), odd_squared.push_back(x[i + 1] * x[i + 1]);
  }
  EXPECT_NEAR(correlation(even, odd), 0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(correlation(even_squared, odd_squared), 0, 5 / std::sqrt(kCount));
}

TEST(Normal, OfDeviationZeroIsTheMean) {
  EXPECT_EQ(values(normal({3}, kKey, {.mean = 1.5, .std = 0})),
            (std::vector<double>{1.5, 1.5, 1.5}));
}

TEST(NormalQuantile, InvertsTheDistributionToF64) {
  for (double z = -37; z < 0; z += 0.0371) {
    // An ulp of p moves z by ulp(p) / density ~ 1e-16 / |z| in the tail: z must come back.
    EXPECT_NEAR(kernels::normal_quantile_lower(kernels::normal_cdf(z)), z,
                1e-14 * std::max(1.0, -z))
        << z;
  }
  EXPECT_EQ(kernels::normal_quantile_lower(0.5), 0);
  EXPECT_NEAR(kernels::normal_quantile_lower(0.025), -1.959963984540054, 1e-15);
}

TEST(TruncatedNormal, IsANormalConditionedOnItsBounds) {
  const Tensor x = truncated_normal({kCount}, kKey, {.mean = 1, .std = 2}, {.dtype = DType::f64});
  const double below = kernels::normal_cdf(-2), mass = kernels::normal_cdf(2) - below;
  EXPECT_LT(
      distance_to(values(x),
                  [&](double v) { return (kernels::normal_cdf((v - 1) / 2) - below) / mass; }),
      kDistance);
  // The variance of a normal cut at 2 sigmas is 0.7737 of the whole.
  EXPECT_NEAR(variance_of(values(x)) / 4, 0.7737, 0.01);
}

TEST(TruncatedNormal, StaysInsideItsBoundsInEveryDtype) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3}) {
    const std::vector<double> sigmas = values(
        truncated_normal({kCount}, kKey, {.std = 0.3, .bounds = SigmaBounds{-1, 1.5}}, {dtype}));
    EXPECT_GE(*std::min_element(sigmas.begin(), sigmas.end()), -0.3) << to_text(dtype);
    EXPECT_LE(*std::max_element(sigmas.begin(), sigmas.end()), 0.3 * 1.5) << to_text(dtype);
    const std::vector<double> absolute = values(truncated_normal(
        {kCount}, kKey, {.mean = -0.05, .std = 1, .bounds = AbsoluteBounds{-0.1, 0.7}}, {dtype}));
    EXPECT_GE(*std::min_element(absolute.begin(), absolute.end()), -0.1) << to_text(dtype);
    EXPECT_LE(*std::max_element(absolute.begin(), absolute.end()), 0.7) << to_text(dtype);
  }
}

TEST(TruncatedNormal, ReachesIntoTheTails) {
  const auto expect_tail = [](double low, double high) {
    const std::vector<double> x = values(truncated_normal(
        {kCount}, kKey, {.bounds = AbsoluteBounds{low, high}}, {.dtype = DType::f64}));
    const double upper = kernels::normal_cdf(-low), mass = upper - kernels::normal_cdf(-high);
    EXPECT_LT(distance_to(x, [&](double v) { return (upper - kernels::normal_cdf(-v)) / mass; }),
              kDistance);
    for (double v : x) EXPECT_TRUE(v >= low && v <= high);
    std::vector<double> mirrored = values(truncated_normal(
        {kCount}, kKey, {.bounds = AbsoluteBounds{-high, -low}}, {.dtype = DType::f64}));
    EXPECT_NEAR(mean_of(mirrored), -mean_of(x), 0.02);
  };
  expect_tail(5, 6);
  expect_tail(30, 31);
}

// The trap of torch.nn.init.trunc_normal_(w, std=1/sqrt(16384), a=-3, b=3): bounds are absolute,
// here 384 sigmas away, and truncate nothing. In sigmas they do.
TEST(TruncatedNormal, AbsoluteBoundsOf384SigmasTruncateNothing) {
  const double sigma = 1 / std::sqrt(16384.0);
  EXPECT_EQ(3 / sigma, 384);
  const Tensor whole = truncated_normal(
      {kCount}, kKey, {.std = sigma, .bounds = AbsoluteBounds{-3, 3}}, {.dtype = DType::f64});
  EXPECT_LT(distance_to(values(whole), [&](double v) { return kernels::normal_cdf(v / sigma); }),
            kDistance);
  const auto beyond_three = [&](const Tensor& x) {
    const std::vector<double> all = values(x);
    return std::count_if(all.begin(), all.end(),
                         [&](double v) { return std::fabs(v) > 3 * sigma; });
  };
  EXPECT_NEAR(static_cast<double>(beyond_three(whole)), 0.0027 * kCount,
              5 * std::sqrt(0.0027 * kCount));
  EXPECT_EQ(
      beyond_three(truncated_normal({kCount}, kKey, {.std = sigma, .bounds = SigmaBounds{-3, 3}})),
      0);
}

TEST(RandInt, IsUniformAndStaysInsideItsBounds) {
  const std::vector<int64_t> x = randint({kCount}, kKey, -3, 7).to_vector<int64_t>();
  std::vector<int> counts(10);
  for (int64_t value : x) {
    ASSERT_TRUE(value >= -3 && value < 7);
    ++counts[static_cast<size_t>(value + 3)];
  }
  double chi_square = 0;
  for (int count : counts) chi_square += std::pow(count - kCount / 10.0, 2) / (kCount / 10.0);
  EXPECT_LT(chi_square, 27.9);  // 9 degrees of freedom, 0.1 %
}

TEST(RandInt, TakesTheWidestAndTheNarrowestRange) {
  EXPECT_EQ(randint({2}, kKey, 5, 6).to_vector<int64_t>(), (std::vector<int64_t>{5, 5}));
  const std::vector<int64_t> x = randint({1000}, kKey, INT64_MIN, INT64_MAX).to_vector<int64_t>();
  EXPECT_EQ(std::set<int64_t>(x.begin(), x.end()).size(), 1000U);
  EXPECT_NEAR(
      static_cast<double>(std::count_if(x.begin(), x.end(), [](int64_t v) { return v < 0; })), 500,
      80);
  EXPECT_EQ(randint({3}, kKey, 0, 256, {.dtype = DType::u8}).dtype(), DType::u8);
}

TEST(RandomKeys, ElementsDependOnKeyAndPositionAlone) {
  const std::vector<double> all = values(normal({kCount}, kKey));
  const std::vector<double> few = values(normal({3, 5}, kKey));
  EXPECT_TRUE(std::equal(few.begin(), few.end(), all.begin()));
  EXPECT_EQ(values(normal({3, 5}, key_tensor(kKey))), few);
  EXPECT_EQ(values(uniform({9}, kKey, {}, {.dtype = DType::f32})),
            values(cast(uniform({9}, kKey, {}, {.dtype = DType::f64}), DType::f32)));
}

TEST(RandomKeys, SeedStreamAndDrawAllMatter) {
  const std::vector<double> x = values(normal({kCount}, kKey));
  RandomKey seed = kKey, high_seed = kKey, stream = kKey, draw = kKey;
  seed.seed += 1, high_seed.seed += uint64_t{1} << 63, stream.stream += 1, draw.draw += 1;
  for (const RandomKey& other : {seed, high_seed, stream, draw}) {
    EXPECT_NEAR(correlation(x, values(normal({kCount}, other))), 0, 5 / std::sqrt(kCount));
  }
}

TEST(RandomStreams, EachNameCountsItsOwnDraws) {
  Random random(7);
  RandomStream& init = random.stream("init");
  EXPECT_EQ(init.next(), (RandomKey{7, stream_id("init"), 0}));
  EXPECT_EQ(random.stream("dropout").next(), (RandomKey{7, stream_id("dropout"), 0}));
  EXPECT_EQ(random.stream("init").next(), (RandomKey{7, stream_id("init"), 1}));
  EXPECT_EQ(init.draws(), 2U);
  init.resume_at(1);
  EXPECT_EQ(init.next().draw, 1U);
  random.reseed(8);
  EXPECT_EQ(init.next(), (RandomKey{8, stream_id("init"), 0}));
}

TEST(RandomStreams, AnotherStreamsDrawsChangeNothing) {
  Random quiet(7), busy(7);
  for (int i = 0; i < 5; ++i) normal({10}, busy.stream("dropout"));
  EXPECT_EQ(values(normal({10}, quiet.stream("init"))), values(normal({10}, busy.stream("init"))));
  EXPECT_NE(values(normal({10}, quiet.stream("init"))), values(normal({10}, quiet.stream("init"))));
}

TEST(RandomStreams, OneSeedRepeatsEverything) {
  const auto draw_all = [] {
    std::vector<double> all;
    for (const Tensor& x : {normal({3}), uniform({2, 2}), truncated_normal({3}),
                            randint({4}, 0, 100), normal({2}, default_random().stream("init"))}) {
      for (double value : values(x)) all.push_back(value);
    }
    return all;
  };
  seed_all(5);
  const std::vector<double> first = draw_all(), second = draw_all();
  EXPECT_NE(first, second);
  seed_all(5);
  EXPECT_EQ(draw_all(), first);
  seed_all(6);
  EXPECT_NE(draw_all(), first);
  seed_all(0);
}

// "costarring" and "liquid" have the same FNV-1a hash, as a list of collisions says.
TEST(RandomStreams, NamesOfOneNumberAreRefused) {
  ASSERT_EQ(stream_id("costarring"), stream_id("liquid"));
  Random random(1);
  random.stream("costarring");
  EXPECT_THAT(error_of([&] { random.stream("liquid"); }),
              HasSubstr("random: the streams \"costarring\" and \"liquid\" have the same number"));
}

TEST(RandomErrors, NameTheRuleAndTheValues) {
  EXPECT_THAT(error_of([] {
                uniform({2}, kKey, {1, 1});
              }),
              HasSubstr("uniform: low is 1 and high is 1; low must be below high"));
  EXPECT_THAT(error_of([] { uniform({2}, kKey, {0, kInfinity}); }), HasSubstr("must be finite"));
  EXPECT_THAT(error_of([] {
                uniform({2}, kKey, {0, 1e6}, {.dtype = DType::f16});
              }),
              HasSubstr("do not fit f16, whose largest value is 65504; use a wider dtype"));
  EXPECT_THAT(error_of([] {
                uniform({2}, kKey, {-1.5e308, 1.5e308}, {.dtype = DType::f64});
              }),
              HasSubstr("is too wide for f64"));
  EXPECT_THAT(error_of([] {
                uniform({2}, kKey, {1.001, 1.002}, {.dtype = DType::bf16});
              }),
              HasSubstr("uniform: no bf16 value lies between 1.001 and 1.002; use a wider dtype"));
  EXPECT_THAT(error_of([] { uniform({2}, kKey, {}, {.dtype = DType::i32}); }),
              HasSubstr("uniform: cannot make i32 elements; use a float dtype and cast"));
  EXPECT_THAT(error_of([] { uniform({-2}, kKey); }), HasSubstr("negative size"));
  EXPECT_THAT(error_of([] { uniform({2}, zeros({3})); }),
              HasSubstr("uniform: the key must be i64[3] (seed, stream, draw), not f32[3]"));
  EXPECT_THAT(error_of([] { normal({2}, kKey, {.std = -1}); }),
              HasSubstr("normal: std -1 must be finite and >= 0"));
  EXPECT_THAT(error_of([] { normal({2}, kKey, {.mean = kInfinity}); }),
              HasSubstr("normal: mean inf"));
  EXPECT_THAT(
      error_of([] {
        truncated_normal({2}, kKey, {.bounds = SigmaBounds{2, -2}});
      }),
      HasSubstr("truncated_normal: bounds of 2 and -2 sigmas; they must be finite, the lower"));
  EXPECT_THAT(error_of([] {
                truncated_normal({2}, kKey, {.bounds = AbsoluteBounds{2, 1}});
              }),
              HasSubstr("truncated_normal: low is 2 and high is 1; low must be below high"));
  EXPECT_THAT(error_of([] { truncated_normal({2}, kKey, {.std = 0}); }),
              HasSubstr("bounds in sigmas need std > 0, not 0; use AbsoluteBounds"));
  EXPECT_THAT(error_of([] {
                truncated_normal({2}, kKey, {.bounds = AbsoluteBounds{50, 60}});
              }),
              HasSubstr("are 50 sigmas or more away from the mean 0"));
  EXPECT_THAT(error_of([] { randint({2}, kKey, 4, 4); }),
              HasSubstr("randint: low is 4 and high is 4; low must be below high"));
  EXPECT_THAT(error_of([] { randint({2}, kKey, 0, 257, {.dtype = DType::u8}); }),
              HasSubstr("randint: 0 .. 256 do not fit u8, which goes from 0 to 255"));
  EXPECT_THAT(error_of([] { randint({2}, kKey, 0, 2, {.dtype = DType::boolean}); }),
              HasSubstr("randint: cannot make bool elements; use an integer dtype and cast"));
}

TEST(Random, MakesShapesWithoutElementsOnTheNullDevice) {
  EXPECT_EQ(normal({1'000'000, 1'000'000}, kKey, {}, {.device = Device::null()}).numel(),
            1'000'000'000'000);
}

TEST(RandomThreads, TheNumberOfThreadsChangesNoBit) {
  const auto draw_all = [] {
    std::vector<std::vector<double>> all;
    for (const Tensor& x : {uniform({100001}, kKey), normal({100001}, kKey),
                            truncated_normal({100001}, kKey), randint({100001}, kKey, -5, 1000)}) {
      all.push_back(values(x));
    }
    return all;
  };
  set_num_threads(1);
  const auto expected = draw_all();
  for (int threads : {2, 5}) {
    set_num_threads(threads);
    EXPECT_EQ(draw_all(), expected) << threads << " threads";
  }
  set_num_threads(available_cores());
}

}  // namespace
}  // namespace brrr
