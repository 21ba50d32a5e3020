// Chains through registers against the tile functions of their ops, bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "brrr/kernels/cpu/elementwise/chain_tiles.h"
#include "brrr/ops/op_list.h"

namespace brrr {
namespace {

std::vector<float> awkward_values(size_t count, uint32_t seed) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float special[] = {0.0F, -0.0F, kInf, -kInf, std::nanf(""), 1e-40F, -3.5F, 1.0F, 2e38F};
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    const uint32_t pick = random() % 20;
    value = pick < std::size(special)
                ? special[pick]
                : static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 64;
  }
  return values;
}

// NaN is NaN whatever its payload: which operand's it carries is the hardware's choice.
bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (a != a && b != b);
}

// `constants`: bit i makes operand i one number for all elements.
void expect_chain_of(const OpDef& op, bool reversed, size_t count, uint64_t constants = 0) {
  const TileKernels tiles = op.tiles();
  ASSERT_NE(tiles.chain, ChainCode::none) << op.name;
  std::vector<float> a = awkward_values(count, 1), b = awkward_values(count, 2);
  if ((constants & 1) != 0) std::fill(a.begin(), a.end(), a[0]);
  if ((constants & 2) != 0) std::fill(b.begin(), b.end(), b[0]);
  const bool binary = tiles.chain <= ChainCode::minimum;
  std::vector<float> expected(count), got(count);
  const Attrs none{};
  tiles.f32({.inputs = {reversed ? b.data() : a.data(), reversed ? a.data() : b.data()},
             .output = expected.data(),
             .count = static_cast<int64_t>(count),
             .attrs = &none});
  const kernels::ChainOp chain[] = {{tiles.chain, binary ? 1 : -1, reversed}};
  const float* inputs[] = {a.data(), b.data()};
  kernels::run_chain({chain, inputs, constants, got.data(), static_cast<int64_t>(count)});
  for (size_t i = 0; i < count; ++i)
    EXPECT_TRUE(same(got[i], expected[i]))
        << op.name << " of " << a[i] << ", " << b[i] << ": " << got[i] << ", not " << expected[i];
}

TEST(Chain, EveryOpGivesTheBitsOfItsTile) {
  for (size_t count : {1U, 15U, 128U, 300U, 1024U}) {
    for (const OpDef* op : {&add_op, &sub_op, &mul_op, &div_op, &maximum_op, &minimum_op}) {
      expect_chain_of(*op, false, count);
      expect_chain_of(*op, true, count);
      for (uint64_t constants : {1U, 2U, 3U}) expect_chain_of(*op, true, count, constants);
    }
    for (const OpDef* op : {&neg_op, &abs_op, &square_op, &relu_op, &sqrt_op, &reciprocal_op})
      expect_chain_of(*op, false, count);
  }
}

TEST(Chain, RunsItsOpsInOrderAndInPlace) {
  std::vector<float> x{1, 2, 3, -4, 5};
  const std::vector<float> y{2};
  const kernels::ChainOp chain[] = {{ChainCode::mul, 1},        // 2x
                                    {ChainCode::sub, 1, true},  // 2 - 2x
                                    {ChainCode::square},        // (2 - 2x)^2
                                    {ChainCode::div, 1},        // / 2
                                    {ChainCode::add, 0}};       // + x
  const float* inputs[] = {x.data(), y.data()};
  kernels::run_chain({chain, inputs, 0b10, x.data(), 5});
  EXPECT_EQ(x, (std::vector<float>{1, 4, 11, 46, 37}));
}

}  // namespace
}  // namespace brrr
