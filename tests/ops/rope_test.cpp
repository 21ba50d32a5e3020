#include "brrr/ops/attention/rope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/brrr.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::HasSubstr;

TEST(Rope, TurnsAPairByItsPosition) {
  const Tensor x = reshape(tensor({1, 0, 1, 0}), {1, 1, 2, 2});
  const std::vector<float> y = rope(x, tensor({0, 2}, DType::i64)).to_vector<float>();
  EXPECT_FLOAT_EQ(y[0], 1);
  EXPECT_FLOAT_EQ(y[1], 0);
  EXPECT_FLOAT_EQ(y[2], std::cos(2.0F));
  EXPECT_FLOAT_EQ(y[3], std::sin(2.0F));
}

TEST(Rope, TurnedBackIsWhereItWas) {
  Random random(2);
  const Tensor x = normal({2, 3, 7, 24}, random.stream("x")), at = arange(7);
  for (bool interleaved : {false, true}) {
    const Tensor there = rope(x, at, {.interleaved = interleaved});
    const Tensor back = rope(there, at, {.interleaved = interleaved, .inverse = true});
    EXPECT_LT(max(abs(back - x)).item<float>(), 2e-6);
  }
}

// An f32 angle of a million radians would be off by up to 0.03.
TEST(Rope, IsAccurateAtLargePositions) {
  const int64_t position = 1'000'003;
  const Tensor x = reshape(tensor({1, 0}), {1, 1, 1, 2});
  const Tensor at = from_values(std::vector<int64_t>{position}, {1});
  const std::vector<float> y = rope(x, at).to_vector<float>();
  EXPECT_NEAR(y[0], std::cos(static_cast<double>(position)), 1e-7);
  EXPECT_NEAR(y[1], std::sin(static_cast<double>(position)), 1e-7);
}

TEST(Rope, LeavesTheRestOfAHeadAlone) {
  const Tensor x = reshape(tensor({1, 2, 3, 4, 5, 6}), {1, 1, 1, 6});
  const Tensor y = rope(x, tensor({3}, DType::i64), {.rotary_dim = 2});
  EXPECT_THAT(slice(y, -1, {2, 6}).to_vector<float>(), testing::ElementsAre(3, 4, 5, 6));
}

TEST(Rope, ATableServesAllLayers) {
  Random random(3);
  const Tensor x = normal({2, 3, 7, 24}, random.stream("x")), at = arange(7);
  EXPECT_EQ(rope(x, rope_table(at, 12)).to_vector<float>(), rope(x, at).to_vector<float>());
}

TEST(Rope, SaysWhyOperandsDoNotFit) {
  const Tensor x = ones({2, 2, 3, 5}), at = arange(3);
  EXPECT_THAT(error_of([&] { rope(x, at); }),
              HasSubstr("use an even number up to the size of a head"));
  EXPECT_THAT(error_of([&] {
                rope(ones({3, 4}), at);
              }),
              HasSubstr("[batch, heads, seq, head_dim]"));
  EXPECT_THAT(error_of([&] { rope(x, arange(4), {.rotary_dim = 4}); }),
              HasSubstr("make it with rope_table of 3 positions, or of [2, 3]"));
}

}  // namespace
}  // namespace brrr
