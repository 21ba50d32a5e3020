// Dropout, bernoulli and permutation: statistics, keys and the edges. Seeds are fixed, so a check
// passes always or never; bounds are five standard errors.
#include "brrr/ops/random/dropout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "brrr/base/thread_pool.h"
#include "brrr/brrr.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kCount = 200'000;
const RandomKey kKey{.seed = 42, .stream = stream_id("test"), .draw = 3};

double share_of_ones(const Tensor& x) { return mean(cast(x, DType::f64)).item<double>(); }
double standard_error(double p) { return std::sqrt(p * (1 - p) / static_cast<double>(kCount)); }

TEST(Dropout, DropsTheShareAndScalesTheRest) {
  for (double p : {0.1, 0.5, 0.9}) {
    const std::vector<double> y =
        dropout(ones({kCount}, {.dtype = DType::f64}), p, kKey).to_vector<double>();
    int64_t dropped = 0;
    for (double value : y) {
      dropped += value == 0;
      if (value != 0) {
        ASSERT_DOUBLE_EQ(value, 1 / (1 - p));
      }
    }
    EXPECT_NEAR(static_cast<double>(dropped) / kCount, p, 5 * standard_error(p));
  }
}

TEST(Dropout, OfZeroKeepsAllAndOfOneNothing) {
  const Tensor x = tensor({1, -2, NAN, INFINITY});
  const std::vector<float> kept = dropout(x, 0, kKey).to_vector<float>();
  EXPECT_EQ(kept[0], 1);
  EXPECT_EQ(kept[1], -2);
  EXPECT_TRUE(std::isnan(kept[2]));
  EXPECT_EQ(kept[3], INFINITY);
  EXPECT_EQ(dropout(x, 1, kKey).to_vector<float>(), (std::vector<float>{0, 0, 0, 0}));
}

TEST(Dropout, GradientDrawsTheSameMask) {
  for (double p : {0.0, 0.4, 1.0}) {
    const Tensor x = ones({1000});
    x.require_grad();
    const Tensor y = dropout(x, p, kKey);
    sum(y).backward();
    EXPECT_EQ(x.grad().to_vector<float>(), y.to_vector<float>());
  }
}

TEST(Dropout, MaskDoesNotDependOnLayoutOrDtype) {
  const Tensor x = ones({30, 41});
  const std::vector<float> expected = dropout(x, 0.5, kKey).to_vector<float>();
  EXPECT_EQ(dropout(transpose(ones({41, 30})), 0.5, kKey).to_vector<float>(), expected);
  EXPECT_EQ(dropout(cast(x, DType::bf16), 0.5, kKey).to_vector<float>(), expected);
}

TEST(Dropout, IsWhereBernoulliIsNot) {
  const Tensor dropped = bernoulli({777}, kKey, 0.3, {.dtype = DType::boolean});
  const Tensor kept = not_equal(dropout(ones({777}), 0.3, kKey), 0);
  EXPECT_TRUE(all(logical_xor(dropped, kept)).item<bool>());
}

TEST(Dropout, OfAStreamIsAnotherOneEachTime) {
  Random random(7);
  const Tensor x = ones({1000});
  const Tensor first = dropout(x, 0.5, random.stream("dropout"));
  const Tensor second = dropout(x, 0.5, random.stream("dropout"));
  EXPECT_TRUE(any(not_equal(first, second)).item<bool>());
  random.reseed(7);
  EXPECT_TRUE(all(equal(first, dropout(x, 0.5, random.stream("dropout")))).item<bool>());
}

TEST(Dropout, RefusesWhatIsNoProbabilityAndWhatIsNoKey) {
  const Tensor x = ones({3});
  for (double p : {-0.1, 1.5, static_cast<double>(NAN)})
    EXPECT_THAT(error_of([&] { dropout(x, p, kKey); }), HasSubstr("must be a probability"));
  EXPECT_THAT(error_of([&] { dropout(x, 0.5, zeros({3})); }), HasSubstr("key_tensor()"));
  EXPECT_THAT(error_of([&] { dropout(cast(x, DType::i32), 0.5, kKey); }),
              HasSubstr("dropout: does not take i32"));
}

TEST(Bernoulli, IsOneWithItsProbability) {
  for (double p : {0.01, 0.3, 0.75})
    EXPECT_NEAR(share_of_ones(bernoulli({kCount}, kKey, p)), p, 5 * standard_error(p));
  EXPECT_EQ(share_of_ones(bernoulli({1000}, kKey, 0)), 0);
  EXPECT_EQ(share_of_ones(bernoulli({1000}, kKey, 1)), 1);
}

TEST(Bernoulli, RefusesWhatIsNoProbability) {
  EXPECT_THAT(error_of([] { bernoulli({3}, kKey, 2); }), HasSubstr("bernoulli: p = 2"));
}

TEST(Permutation, HoldsEveryNumberOnce) {
  for (int64_t count : {0, 1, 2, 1000, 70'001}) {
    std::vector<int64_t> places = permutation(count, kKey).to_vector<int64_t>();
    std::sort(places.begin(), places.end());
    std::vector<int64_t> expected(static_cast<size_t>(count));
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(places, expected);
  }
}

TEST(Permutation, GivesEveryOrderEquallyOften) {
  std::map<std::vector<int64_t>, int> orders;
  constexpr int kDraws = 6000;
  for (uint32_t draw = 0; draw < kDraws; ++draw)
    ++orders[permutation(3, RandomKey{.seed = 1, .draw = draw}).to_vector<int64_t>()];
  EXPECT_EQ(orders.size(), 6u);
  const double error = std::sqrt(kDraws / 6.0 * 5 / 6);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, kDraws / 6.0, 5 * error);
}

TEST(Permutation, ThreadsAndRepetitionDoNotChangeIt) {
  const int before = thread_pool().threads();
  set_num_threads(1);
  const std::vector<int64_t> one = permutation(50'000, kKey).to_vector<int64_t>();
  set_num_threads(5);
  const std::vector<int64_t> five = permutation(50'000, kKey).to_vector<int64_t>();
  set_num_threads(before);
  EXPECT_EQ(one, five);
  EXPECT_NE(one, permutation(50'000, RandomKey{.seed = 43}).to_vector<int64_t>());
}

TEST(Permutation, RefusesANegativeCount) {
  EXPECT_NE(error_of([] { permutation(-1, kKey); }), "no error");
}

}  // namespace
}  // namespace brrr
