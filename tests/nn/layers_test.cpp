// Layers as such: what they call, with which parameters. Their ops are tested in tests/ops.
#include "brrr/nn/layers.h"

#include <gtest/gtest.h>

#include "brrr/nn/attention.h"
#include "brrr/nn/convolution.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/norm/rms_norm.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "support/counter_values.h"
#include "support/error_of.h"

namespace brrr {
namespace {

Tensor values(const Shape& shape) {
  const std::vector<double> numbers = counter_values("x", numel(shape), 1.0);
  return from_values(std::vector<float>(numbers.begin(), numbers.end()), shape);
}

TEST(Layers, RmsNorm) {
  const RmsNorm layer(6, 1e-3);
  for (const NamedTensor& p : layer.named_parameters()) fill_by_name(p);
  const Tensor x = values({4, 6});
  EXPECT_EQ(layer(x).to_vector<float>(), rms_norm(x, layer.weight, 1e-3).to_vector<float>());
}

TEST(Layers, LearnedPositionsAreTheFirstRows) {
  Random random(1);
  const Embedding positions(10, 4, random);
  EXPECT_EQ(positions.first(3).to_vector<float>(), positions(arange(3)).to_vector<float>());
}

TEST(Layers, Convolutions) {
  Random random(1);
  const Conv1d row(4, 6, 3, random, {.windows = {.stride = 2, .padding = 1, .groups = 2}});
  EXPECT_EQ(row.weight.shape(), (Shape{6, 2, 3}));
  const Tensor signal = values({2, 4, 9});
  EXPECT_EQ(row(signal).to_vector<float>(),
            conv1d(signal, row.weight, row.bias, {.stride = 2, .padding = 1, .groups = 2})
                .to_vector<float>());
  const Conv2d plane(3, 5, {3, 1}, random, {.bias = false});
  EXPECT_EQ(plane.parameter_count(), 5 * 3 * 3);
  EXPECT_EQ(plane(values({2, 3, 6, 4})).shape(), (Shape{2, 5, 4, 4}));
  EXPECT_NE(error_of([&] {
              Conv1d(4, 6, 3, random, {.windows = {.groups = 4}});
            }).find("4 groups do not divide"),
            std::string::npos);
}

TEST(Layers, PoolsAndFlatten) {
  const Tensor x = values({2, 3, 4, 4});
  Sequential largest, average;
  largest.add<MaxPool2d>().add<Flatten>();
  average.add<AvgPool2d>(Pool2dOptions{.kernel = 4}).add<Flatten>();
  EXPECT_EQ(largest(x).shape(), (Shape{2, 12}));
  const std::vector<double> means = average(x).to_vector<double>(),
                            expected = mean(x, {2, 3}).to_vector<double>();
  ASSERT_EQ(means.size(), expected.size());
  for (size_t i = 0; i < means.size(); ++i) EXPECT_NEAR(means[i], expected[i], 1e-6);
  EXPECT_NE(error_of([&] { largest[2]; }).find("layer 2 of 2"), std::string::npos);
}

// Which tokens may change the result of token 5 of 8.
std::vector<int64_t> seen_by_token_5(const SelfAttentionOptions& options) {
  Random random(1);
  const SelfAttention layer(8, random, options);
  const Tensor x = values({1, 8, 8});
  const std::vector<float> before = select(layer(x), 1, 5).to_vector<float>();
  std::vector<int64_t> seen;
  for (int64_t t = 0; t < 8; ++t) {
    const Tensor changed = values({1, 8, 8});
    store_float(changed, t * 8, 3.0);
    if (select(layer(changed), 1, 5).to_vector<float>() != before) seen.push_back(t);
  }
  return seen;
}

TEST(Layers, AttentionSeesWhatItMay) {
  using Ids = std::vector<int64_t>;
  const Init large = Init::normal(0.5);
  EXPECT_EQ(seen_by_token_5({.heads = 2, .init = large}), (Ids{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(seen_by_token_5({.heads = 2, .kv_heads = 1, .window = 3, .init = large}),
            (Ids{3, 4, 5}));
  EXPECT_EQ(seen_by_token_5({.heads = 2, .causal = false, .init = large}),
            (Ids{0, 1, 2, 3, 4, 5, 6, 7}));
  Random random(1);
  EXPECT_NE(error_of([&] {
              SelfAttention(8, random, {.heads = 4, .kv_heads = 2, .fused_qkv = true});
            }).find("has no groups"),
            std::string::npos);
}

}  // namespace
}  // namespace brrr
