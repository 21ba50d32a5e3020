// Distributions against brute force, and draws against distributions.
#include "brrr/kernels/scalar/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/counter_values.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::HasSubstr;

std::vector<float> some_logits(size_t count, uint32_t seed) {
  std::vector<float> logits;
  for (size_t i = 0; i < count; ++i)
    logits.push_back(static_cast<float>(hashed(seed + static_cast<uint32_t>(i)) % 1000) / 150 - 3);
  return logits;
}

// The definition, id by id: a token stays when fewer than k beat it, and when the tokens that beat it
// do not have the share p already, and when it is likely enough beside the best.
std::vector<double> brute_force(std::span<const float> logits, std::span<const int32_t> seen,
                                const SamplingOptions& o) {
  const size_t n = logits.size();
  std::vector<double> x(logits.begin(), logits.end());
  for (size_t i = 0; i < n; ++i) {
    if (std::find(seen.begin(), seen.end(), static_cast<int32_t>(i)) != seen.end())
      x[i] = x[i] > 0 ? x[i] / o.repetition_penalty : x[i] * o.repetition_penalty;
  }
  const auto beats = [&](size_t a, size_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); };
  std::vector<bool> in_k(n), kept(n);
  double total_k = 0, best = -HUGE_VAL;
  for (size_t i = 0; i < n; ++i) best = std::max(best, x[i]);
  const auto weight = [&](size_t i) { return std::exp((x[i] - best) / o.temperature); };
  for (size_t i = 0; i < n; ++i) {
    int64_t better = 0;
    for (size_t j = 0; j < n; ++j) better += beats(j, i);
    in_k[i] = o.top_k == 0 || better < o.top_k;
    if (in_k[i]) total_k += weight(i);
  }
  double total = 0;
  for (size_t i = 0; i < n; ++i) {
    double above = 0;
    bool is_best = true;
    for (size_t j = 0; j < n; ++j) {
      if (!in_k[j] || !beats(j, i)) continue;
      above += weight(j);
      is_best = false;
    }
    kept[i] = in_k[i] && (is_best || above < o.top_p * total_k) && weight(i) >= o.min_p;
    if (kept[i]) total += weight(i);
  }
  std::vector<double> p(n, 0);
  for (size_t i = 0; i < n; ++i) p[i] = kept[i] ? weight(i) / total : 0;
  return p;
}

TEST(Sampling, DistributionsAreThoseOfTheDefinition) {
  int cut = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> logits = some_logits(37, seed * 100);
    const std::vector<int32_t> seen{3, 7, 7, static_cast<int32_t>(seed)};
    for (double temperature : {0.5, 1.0, 1.7}) {
      for (int64_t top_k : {0, 1, 5, 40}) {
        for (double top_p : {1.0, 0.9, 0.3}) {
          for (double min_p : {0.0, 0.1}) {
            const SamplingOptions options{.temperature = temperature,
                                          .top_k = top_k,
                                          .top_p = top_p,
                                          .min_p = min_p,
                                          .repetition_penalty = seed % 2 ? 1.3 : 1.0};
            const auto actual = token_distribution(logits, seen, options);
            const auto expected = brute_force(logits, seen, options);
            for (size_t i = 0; i < logits.size(); ++i) {
              ASSERT_NEAR(actual[i], expected[i], 1e-12) << i;
              cut += expected[i] == 0;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(cut, 1000) << "the options must cut something";
}

TEST(Sampling, EqualLogitsGoByTheirIds) {
  const std::vector<float> equal(6, 1.0F);
  EXPECT_THAT(token_distribution(equal, {}, {.top_k = 2}),
              testing::ElementsAre(0.5, 0.5, 0, 0, 0, 0));
  EXPECT_EQ(token_distribution(equal, {}, {.temperature = 0})[0], 1);
}

TEST(Sampling, TemperatureZeroIsGreedy) {
  const std::vector<float> logits{-1, 4, 3.9F, -std::numeric_limits<float>::infinity()};
  for (uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_EQ(sample_token(logits, {}, {.temperature = 0, .seed = seed}, {}), 1);
  const std::vector<int32_t> seen{1};
  EXPECT_EQ(sample_token(logits, seen, {.temperature = 0, .repetition_penalty = 2}, {}), 2)
      << "the penalty counts before the choice";
}

// 40000 draws: every frequency within 5 standard deviations, and nothing that was left out.
TEST(Sampling, DrawsFollowTheDistribution) {
  const std::vector<float> logits = some_logits(11, 5);
  const SamplingOptions options{.temperature = 0.9, .top_p = 0.95, .seed = 3};
  const auto expected = token_distribution(logits, {}, options);
  constexpr int kDraws = 40000;
  std::vector<int> counts(logits.size());
  for (int i = 0; i < kDraws; ++i) {
    const DrawPlace place{.sample = static_cast<uint32_t>(i % 7),
                          .position = static_cast<uint64_t>(i)};
    ++counts[static_cast<size_t>(sample_token(logits, {}, options, place))];
  }
  for (size_t i = 0; i < logits.size(); ++i) {
    const double sigma = std::sqrt(expected[i] * (1 - expected[i]) / kDraws);
    EXPECT_NEAR(static_cast<double>(counts[i]) / kDraws, expected[i], 5 * sigma) << i;
  }
}

TEST(Sampling, ADrawIsAFunctionOfSeedSampleAndPosition) {
  const std::vector<float> logits = some_logits(500, 9);
  const auto draws = [&](uint64_t seed, uint32_t sample) {
    std::vector<int32_t> tokens;
    for (uint64_t position = 0; position < 20; ++position)
      tokens.push_back(sample_token(logits, {}, {.seed = seed}, {sample, position}));
    return tokens;
  };
  EXPECT_EQ(draws(1, 0), draws(1, 0));
  EXPECT_NE(draws(1, 0), draws(2, 0));
  EXPECT_NE(draws(1, 0), draws(1, 1));
}

TEST(Sampling, NamesTheOptionThatIsOff) {
  const std::vector<float> logits{1, 2};
  const auto message = [&](const SamplingOptions& options) {
    return error_of([&] { token_distribution(logits, {}, options); });
  };
  EXPECT_THAT(message({.temperature = -1}), HasSubstr("temperature -1"));
  EXPECT_THAT(message({.top_k = -2}), HasSubstr("top_k -2"));
  EXPECT_THAT(message({.top_p = 0}), HasSubstr("top_p 0"));
  EXPECT_THAT(message({.min_p = 1.5}), HasSubstr("min_p 1.5"));
  EXPECT_THAT(message({.repetition_penalty = 0}), HasSubstr("repetition_penalty 0"));
  const std::vector<float> broken{1, std::nanf("")};
  EXPECT_THAT(error_of([&] { token_distribution(broken, {}, {}); }), HasSubstr("logit of token 1"));
}

}  // namespace
}  // namespace brrr
