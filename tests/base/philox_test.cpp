#include "brrr/base/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace brrr {
namespace {

constexpr bool equal(const PhiloxBlock& a, const PhiloxBlock& b) {
  return a.v[0] == b.v[0] && a.v[1] == b.v[1] && a.v[2] == b.v[2] && a.v[3] == b.v[3];
}

// From kat_vectors of the Random123 distribution: "philox4x32 10".
TEST(Philox, MatchesTheKnownAnswers) {
  constexpr std::uint32_t kOnes = 0xffffffff;
  static_assert(equal(philox4x32({{0, 0, 0, 0}}, {{0, 0}}),
                      {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}));
  static_assert(equal(philox4x32({{kOnes, kOnes, kOnes, kOnes}}, {{kOnes, kOnes}}),
                      {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}));
  PhiloxCounter counter{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}};
  PhiloxKey key{{0xa4093822, 0x299f31d0}};
  EXPECT_TRUE(equal(philox4x32(counter, key), {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}));
}

TEST(Philox, CounterAndKeyUseEveryBitOfTheirArguments) {
  PhiloxCounter counter = philox_counter(0x1122334455667788, 0x99aabbcc, 0xddeeff00);
  EXPECT_EQ(counter.c[0], 0x55667788u);
  EXPECT_EQ(counter.c[1], 0x11223344u);
  EXPECT_EQ(counter.c[2], 0xddeeff00u);
  EXPECT_EQ(counter.c[3], 0x99aabbccu);
  PhiloxKey key = philox_key(0x0123456789abcdef);
  EXPECT_EQ(key.k[0], 0x89abcdefu);
  EXPECT_EQ(key.k[1], 0x01234567u);
}

TEST(Philox, StreamIdIsFnv1a) {
  static_assert(stream_id("") == 0x811c9dc5);
  static_assert(stream_id("a") == 0xe40c292c);
  static_assert(stream_id("foobar") == 0xbf9cf968);
  std::vector<std::uint32_t> used{stream_id("init"), stream_id("data_order"), stream_id("dropout"),
                                  stream_id("sampling"), stream_id("stochastic_rounding")};
  std::sort(used.begin(), used.end());
  EXPECT_EQ(std::adjacent_find(used.begin(), used.end()), used.end());
}

TEST(Philox, UniformsKeepTheirBounds) {
  static_assert(uniform01(0) == 0.0f && uniform01(0xffffffff) == 1.0f - 0x1p-24f);
  static_assert(uniform_open01(0) == 0x1p-24f && uniform_open01(0xffffffff) == 1.0f);
  static_assert(uniform01_double(0, 0) == 0.0);
  static_assert(uniform01_double(0xffffffff, 0xffffffff) == 1.0 - 0x1p-53);
  static_assert(uniform01_double(0x80000000, 0x00000800) == 0.5 + 0x1p-53);
  static_assert(uniform01(0x80000000) == 0.5f);
}

std::vector<double> draw(std::uint64_t seed, std::uint32_t stream, std::uint32_t step, int blocks) {
  std::vector<double> result;
  for (int i = 0; i < blocks; ++i) {
    PhiloxCounter counter = philox_counter(static_cast<std::uint64_t>(i), stream, step);
    PhiloxBlock block = philox4x32(counter, philox_key(seed));
    for (std::uint32_t word : block.v) result.push_back(uniform01(word));
  }
  return result;
}

double mean(const std::vector<double>& x) {
  double sum = 0;
  for (double value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  double mean_x = mean(x), mean_y = mean(y), xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  return xy / std::sqrt(xx * yy);
}

constexpr int kBlocks = 50'000;
const double kSamples = 4.0 * kBlocks;

// Tolerances are five standard errors; the numbers are fixed, so this passes always or never.
TEST(Philox, UniformsHaveTheRightMeanVarianceAndSpread) {
  std::vector<double> x = draw(7, stream_id("test"), 0, kBlocks);
  double variance = 0;
  std::vector<int> bins(64);
  for (double value : x) {
    variance += (value - 0.5) * (value - 0.5) / kSamples;
    ++bins[static_cast<std::size_t>(value * 64)];
  }
  EXPECT_NEAR(mean(x), 0.5, 5 * std::sqrt(1.0 / 12 / kSamples));
  EXPECT_NEAR(variance, 1.0 / 12, 5 * std::sqrt(1.0 / 180 / kSamples));
  double expected = kSamples / 64, chi_square = 0;
  for (int count : bins) chi_square += (count - expected) * (count - expected) / expected;
  EXPECT_NEAR(chi_square, 63, 5 * std::sqrt(2.0 * 63));
}

TEST(Philox, StreamsStepsSeedsAndLagsAreIndependent) {
  const double tolerance = 5 / std::sqrt(kSamples);
  std::vector<double> x = draw(7, stream_id("dropout"), 3, kBlocks);
  EXPECT_NEAR(correlation(x, draw(7, stream_id("init"), 3, kBlocks)), 0, tolerance);
  EXPECT_NEAR(correlation(x, draw(7, stream_id("dropout"), 4, kBlocks)), 0, tolerance);
  EXPECT_NEAR(correlation(x, draw(8, stream_id("dropout"), 3, kBlocks)), 0, tolerance);
  for (int lag : {1, 4}) {  // neighbours within a block, and the same word of the next block
    std::vector<double> early(x.begin(), x.end() - lag), late(x.begin() + lag, x.end());
    EXPECT_NEAR(correlation(early, late), 0, tolerance) << lag;
  }
}

}  // namespace
}  // namespace brrr
