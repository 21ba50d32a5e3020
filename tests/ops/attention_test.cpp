#include "brrr/ops/attention/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "brrr/brrr.h"
#include "brrr/kernels/calls/attention_rule.h"
#include "brrr/ops/op_list.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

struct Inputs {
  Tensor q, k, v;
};

Inputs random_inputs(const Shape& q, const Shape& k, uint64_t seed = 5) {
  Random random(seed);
  return {normal(q, random.stream("q")), normal(k, random.stream("k")),
          normal(k, random.stream("v"))};
}

// The op's definition in plain ops, in f64.
Tensors composed(const OpDef& op, const Tensors& inputs, const Attrs& attrs) {
  Tensors wide;
  for (const Tensor& x : inputs) wide.push_back(is_float(x.dtype()) ? cast(x, DType::f64) : x);
  return op.compose({wide, attrs});
}

double largest_difference(const Tensor& a, const Tensor& b) {
  return max(abs(cast(a, DType::f64) - cast(b, DType::f64))).item<double>();
}

TEST(Attention, OfEqualScoresIsTheMeanOfTheVisibleValues) {
  const Tensor q = zeros({1, 1, 3, 2}), v = reshape(tensor({1, 3, 8}), {1, 1, 3, 1});
  const Tensor k = ones({1, 1, 3, 2});
  EXPECT_THAT(attention(q, k, v).to_vector<float>(), ElementsAre(4, 4, 4));
  EXPECT_THAT(attention(q, k, v, {.causal = true}).to_vector<float>(), ElementsAre(1, 2, 4));
  EXPECT_THAT(attention(q, k, v, {.window = 2}).to_vector<float>(), ElementsAre(1, 2, 5.5));
}

TEST(Attention, AlignsQueriesAtTheLastKey) {
  const Tensor q = zeros({1, 1, 2, 1}), k = ones({1, 1, 4, 1});
  const Tensor v = reshape(tensor({3, 6, 9, 2}), {1, 1, 4, 1});
  EXPECT_THAT(attention(q, k, v, {.causal = true}).to_vector<float>(), ElementsAre(6, 5));
  // Of two valid keys the queries stand at positions 0 and 1.
  const Tensor lengths = tensor({2}, DType::i64);
  EXPECT_THAT(attention(q, k, v, {.causal = true, .lengths = lengths}).to_vector<float>(),
              ElementsAre(3, 4.5));
}

TEST(Attention, OfAQueryThatSeesNothingIsZeroAndHasNoGradient) {
  const Inputs in = random_inputs({1, 2, 4, 8}, {1, 2, 2, 8});
  in.q.require_grad(), in.k.require_grad(), in.v.require_grad();
  const auto [out, total] = attention_with_logsumexp(in.q, in.k, in.v, {.causal = true});
  const float hidden = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(slice(out, 2, {0, 2}).to_vector<float>(), Each(0));
  EXPECT_THAT(slice(total, 2, {0, 2}).to_vector<float>(), Each(hidden));
  const std::vector<Tensor> grads = grad(sum(square(out)), {in.q, in.k, in.v});
  EXPECT_THAT(slice(grads[0], 2, {0, 2}).to_vector<float>(), Each(0));
  for (const Tensor& g : grads) EXPECT_TRUE(all(isfinite(g)).item<bool>());
}

TEST(Attention, ProbabilitiesOfAQueryThatSeesNothingAreZeroAndHaveNoGradient) {
  const Inputs in = random_inputs({1, 2, 4, 8}, {1, 2, 2, 8});
  in.q.require_grad(), in.k.require_grad();
  const Tensor p = attention_probabilities(in.q, in.k, {.causal = true});
  EXPECT_THAT(slice(p, 2, {0, 2}).to_vector<float>(), Each(0));
  const std::vector<float> totals = sum(slice(p, 2, {2, 4}), {-1}).to_vector<float>();
  EXPECT_THAT(totals, Each(testing::FloatNear(1, 1e-6)));
  const std::vector<Tensor> grads = grad(sum(square(p)), {in.q, in.k});
  EXPECT_THAT(slice(grads[0], 2, {0, 2}).to_vector<float>(), Each(0));
  for (const Tensor& g : grads) EXPECT_TRUE(all(isfinite(g)).item<bool>());
  const Tensor none = attention_probabilities(in.q, in.k, {.lengths = tensor({0}, DType::i64)});
  EXPECT_THAT(none.to_vector<float>(), Each(0));
  EXPECT_TRUE(largest_difference(mix_values(p, in.v),
                                 attention(in.q, in.k, in.v, {.causal = true})) < 1e-6);
}

TEST(AttentionMask, HidesWhatBoolsSay) {
  const Tensor q = zeros({1, 1, 3, 2}), k = ones({1, 1, 3, 2});
  const Tensor v = reshape(tensor({1, 3, 8}), {1, 1, 3, 1});
  const Tensor mask = tensor({{1, 0, 1}, {0, 0, 0}, {1, 1, 0}}, DType::boolean);
  EXPECT_THAT(attention(q, k, v, {.mask = mask}).to_vector<float>(), ElementsAre(4.5, 0, 2));
  // A key must pass the mask and the rule.
  EXPECT_THAT(attention(q, k, v, {.causal = true, .mask = mask}).to_vector<float>(),
              ElementsAre(1, 0, 2));
  const Tensor total = attention_with_logsumexp(q, k, v, {.mask = mask}).logsumexp;
  EXPECT_NEAR(total.to_vector<float>()[0], std::log(2.0), 1e-6);
  EXPECT_EQ(total.to_vector<float>()[1], -std::numeric_limits<float>::infinity());
  EXPECT_THAT(attention_probabilities(q, k, {.mask = mask}).to_vector<float>(),
              ElementsAre(0.5, 0, 0.5, 0, 0, 0, 0.5, 0.5, 0));
}

TEST(AttentionMask, OfARuleGivesTheRule) {
  const Inputs in = random_inputs({2, 4, 9, 8}, {2, 2, 9, 8});
  const Tensor all_pairs = ones({9, 9}, DType::boolean);
  const Tensor lower = tril(cast(all_pairs, DType::i32)) > 0;
  for (const Tensor& mask : {lower, where(lower, 0.0f, -std::numeric_limits<float>::infinity())}) {
    const Tensor masked = attention(
        in.q, in.k, in.v,
        {.mask = cast(mask, mask.dtype() == DType::boolean ? DType::boolean : DType::f32)});
    EXPECT_LT(largest_difference(masked, attention(in.q, in.k, in.v, {.causal = true})), 1e-6);
  }
}

TEST(AttentionMask, GradientsAreFiniteWhereNothingIsSeen) {
  const Inputs in = random_inputs({1, 2, 3, 4}, {1, 2, 5, 4});
  const double hidden = -std::numeric_limits<double>::infinity();
  const Tensor mask = where(tensor({{1, 0, 1, 0, 0}, {0, 0, 0, 0, 0}, {1, 1, 1, 1, 1}}) > 0.5,
                            zeros({3, 5}), hidden);
  in.q.require_grad(), in.k.require_grad(), in.v.require_grad(), mask.require_grad();
  const Tensor out = attention(in.q, in.k, in.v, {.mask = mask});
  EXPECT_THAT(slice(out, 2, {1, 2}).to_vector<float>(), Each(0));
  for (const Tensor& g : grad(sum(square(out)), {in.q, in.k, in.v, mask}))
    EXPECT_TRUE(all(isfinite(g)).item<bool>());
}

TEST(AttentionMask, CompiledIsWhatEagerIs) {
  const Inputs in = random_inputs({1, 2, 6, 8}, {1, 1, 6, 8});
  const Tensor mask = uniform({2, 6, 6}, RandomKey{.seed = 3}) > 0.4;
  auto f = runtime::compile(
      [&](Tensor q, Tensor seen) { return attention(q, in.k, in.v, {.mask = seen}); });
  EXPECT_EQ(f(in.q, mask).to_vector<float>(),
            attention(in.q, in.k, in.v, {.mask = mask}).to_vector<float>());
}

TEST(AttentionMask, SaysWhyItDoesNotFit) {
  const Inputs in = random_inputs({2, 2, 3, 4}, {2, 2, 5, 4});
  const auto refusal = [&](const Tensor& mask) {
    return error_of([&] { attention(in.q, in.k, in.v, {.mask = mask}); });
  };
  EXPECT_EQ(
      refusal(ones({3, 4}, DType::boolean)),
      "masked_attention: the mask of shape [3, 4] must broadcast to [batch, heads, queries, keys] "
      "= [2, 2, 3, 5]");
  EXPECT_EQ(
      refusal(ones({3, 5}, DType::i64)),
      "masked_attention: the mask is i64; it must be bool (true: may be seen) or f32 to add to the "
      "scores");
  EXPECT_THAT(error_of([&] {
                attention_probabilities(in.q, in.k, {.mask = ones({4, 5})});
              }),
              HasSubstr("attention_probabilities: the mask of shape [4, 5]"));
}

TEST(Attention, StaysInsideADocument) {
  const Inputs in = random_inputs({1, 2, 200, 16}, {1, 2, 200, 16});
  std::vector<int64_t> ids(200, 0);
  std::fill(ids.begin() + 70, ids.end(), 1);
  const Tensor both =
      attention(in.q, in.k, in.v, {.causal = true, .documents = from_values(ids, {1, 200})});
  const auto alone = [&](Slice part) {
    return attention(slice(in.q, 2, part), slice(in.k, 2, part), slice(in.v, 2, part),
                     {.causal = true});
  };
  EXPECT_LT(largest_difference(slice(both, 2, {0, 70}), alone({0, 70})), 2e-6);
  EXPECT_LT(largest_difference(slice(both, 2, {70, 200}), alone({70, 200})), 2e-6);
}

TEST(Attention, PartsOfTheKeysPutTogetherGiveTheWhole) {
  const Inputs in = random_inputs({1, 2, 5, 16}, {1, 2, 100, 16});
  const auto part = [&](Slice keys) {
    return attention_with_logsumexp(in.q, slice(in.k, 2, keys), slice(in.v, 2, keys));
  };
  const AttentionResult a = part({0, 37}), b = part({37, 100});
  const Tensor weight = unsqueeze(sigmoid(a.logsumexp - b.logsumexp), -1);
  const Tensor joined = a.out * weight + b.out * (1.0 - weight);
  EXPECT_LT(largest_difference(joined, attention(in.q, in.k, in.v)), 1e-6);
}

// Several blocks and tiles with ragged ends, against the definition in f64. f32 sums of 700 terms of size
// 1 carry about sqrt(700) roundings of 6e-8.
TEST(Attention, OfLongSequencesAgreesWithItsDefinition) {
  const Shape q{1, 4, 700, 40}, k{1, 2, 700, 40};
  const Inputs in = random_inputs(q, k);
  for (const AttentionOptions& options :
       {AttentionOptions{}, AttentionOptions{.causal = true}, AttentionOptions{.window = 129},
        AttentionOptions{.causal = true, .soft_cap = 2}}) {
    const auto [out, total] = attention_with_logsumexp(in.q, in.k, in.v, options);
    const Attrs attrs{{"scale", 1 / std::sqrt(40.0)},
                      {"causal", options.causal},
                      {"window", options.window},
                      {"soft_cap", options.soft_cap}};
    const Tensors expected = composed(attention_op, {in.q, in.k, in.v}, attrs);
    EXPECT_LT(largest_difference(out, expected[0]), 4e-6);
    EXPECT_LT(largest_difference(total, expected[1]), 4e-6);
    Random random(9);
    const Tensors all{in.q,
                      in.k,
                      in.v,
                      out,
                      total,
                      normal(out.shape(), random.stream("dout")),
                      normal(total.shape(), random.stream("dtotal"))};
    const Tensors grads = call_op(attention_backward_op, all, attrs);
    const Tensors wanted = composed(attention_backward_op, all, attrs);
    for (int i = 0; i < 3; ++i) EXPECT_LT(largest_difference(grads[i], wanted[i]), 4e-5) << i;
  }
}

// Scores of 2048 x 2048 would take 16 MiB a head; what is live at most stays a few times the operands.
TEST(Attention, NeverHoldsAllScores) {
  const Inputs in = random_inputs({1, 1, 2048, 16}, {1, 1, 2048, 16});
  in.q.require_grad(), in.k.require_grad(), in.v.require_grad();
  const Bytes before = ledger().live();
  ledger().reset_peak();
  const Tensor out = attention(in.q, in.k, in.v, {.causal = true});
  grad(sum(out), {in.q, in.k, in.v});
  EXPECT_LT((ledger().peak() - before).value(), 6 << 20);
}

TEST(Attention, IsTheSameForAnyNumberOfThreads) {
  const Inputs in = random_inputs({1, 4, 600, 64}, {1, 2, 600, 64});
  in.q.require_grad(), in.k.require_grad(), in.v.require_grad();
  const int before = thread_pool().threads();
  std::vector<std::vector<float>> results;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    const Tensor out = attention(in.q, in.k, in.v, {.causal = true});
    std::vector<float> values = out.to_vector<float>();
    for (const Tensor& g : grad(sum(square(out)), {in.q, in.k, in.v})) {
      const std::vector<float> more = g.to_vector<float>();
      values.insert(values.end(), more.begin(), more.end());
    }
    results.push_back(values);
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(Attention, CountsTheVisiblePairs) {
  const Inputs in = random_inputs({1, 2, 6, 4}, {1, 2, 6, 4});
  const auto flops = [&](const AttentionOptions& options) {
    CostCounter counter;
    attention(in.q, in.k, in.v, options);
    return counter.contractions().flops;
  };
  EXPECT_EQ(flops({}), 2 * 36 * 2 * (4 + 4));
  EXPECT_EQ(flops({.causal = true}), 2 * 21 * 2 * (4 + 4));
  EXPECT_EQ(flops({.window = 2}), 2 * 11 * 2 * (4 + 4));
}

TEST(Attention, SaysWhyOperandsDoNotFit) {
  const Tensor q = ones({1, 4, 3, 8}), k = ones({1, 3, 5, 8});
  EXPECT_THAT(error_of([&] { attention(q, k, k); }), HasSubstr("4 query heads"));
  EXPECT_THAT(error_of([&] {
                attention(ones({3, 8}), k, k);
              }),
              HasSubstr("must be [batch, heads, seq, head_dim]"));
  const Tensor k4 = ones({1, 4, 5, 8});
  EXPECT_THAT(error_of([&] {
                attention(ones({1, 4, 3, 6}), k4, k4);
              }),
              HasSubstr("head sizes differ: q [1, 4, 3, 6], k [1, 4, 5, 8]"));
  const Tensor ids = zeros({1, 5}, {.dtype = DType::i64});
  EXPECT_THAT(error_of([&] { attention(q, k4, k4, {.documents = ids}); }),
              HasSubstr("as many queries as keys"));
  const Tensor lengths = tensor({6}, DType::i64);
  EXPECT_THAT(error_of([&] { attention(q, k4, k4, {.lengths = lengths}); }),
              HasSubstr("length 6 of batch 0 is out of range; there are 5 keys"));
  EXPECT_THAT(error_of([&] {
                attention(k4, k4, k4, {.documents = ids, .lengths = tensor({5}, DType::i64)});
              }),
              HasSubstr("do not mix"));
}

// The closed form is the sum over queries, whatever the window, and whether queries are fewer or more than keys.
TEST(Attention, PairsAreThoseOfEveryQuery) {
  for (const bool causal : {false, true}) {
    for (const int64_t window : {0, 1, 3, 8, 100}) {
      for (const int64_t queries : {0, 1, 5, 9}) {
        for (const int64_t keys : {1, 5, 9}) {
          const kernels::AttentionRule rule{.causal = causal || window > 0, .window = window};
          const kernels::AttentionSizes sizes =
              kernels::attention_sizes({2, 3, queries, 4}, {2, 3, keys, 4}, {2, 3, keys, 4});
          const kernels::VisibleKeys visible = kernels::visible_keys(rule, sizes, keys, nullptr);
          int64_t pairs = 0;
          for (int64_t i = 0; i < queries; ++i) pairs += visible.end(i) - visible.begin(i);
          EXPECT_EQ(kernels::visible_pairs(rule, sizes), 6 * pairs)
              << causal << " " << window << " " << queries << " " << keys;
        }
      }
    }
  }
}

}  // namespace
}  // namespace brrr
