// Dropout inside attention: what it is made of, that it is off without a key, and that its mean is the
// attention without it. Its gradients are in gradients_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/nn/attention.h"
#include "brrr/nn/models.h"
#include "brrr/ops/attention/attention.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/reduce/reduce.h"
#include "support/counter_values.h"
#include "support/error_of.h"

namespace brrr {
namespace {

double furthest(const Tensor& a, const Tensor& b) { return max(abs(a - b)).item<double>(); }

Tensor values(const char* name, const Shape& shape) {
  return from_values(counter_values(name, numel(shape), 1.0), shape);
}

// Heads in groups, a window, capped scores, documents: the matrix in plain ops says what the op says.
TEST(AttentionDropout, ProbabilitiesMixToAttention) {
  const Tensor q = values("q", {2, 4, 9, 6}), k = values("k", {2, 2, 9, 6}),
               v = values("v", {2, 2, 9, 5});
  const Tensor documents = from_values(
      std::vector<int64_t>{0, 0, 0, 1, 1, 1, 1, 2, 2, 4, 4, 4, 4, 4, 4, 4, 4, 4}, {2, 9});
  const AttentionOptions cases[] = {{},
                                    {.causal = true},
                                    {.scale = 0.3, .causal = true, .window = 3},
                                    {.causal = true, .soft_cap = 0.7},
                                    {.causal = true, .documents = documents}};
  for (const AttentionOptions& options : cases) {
    const Tensor probabilities = attention_probabilities(q, k, options);
    EXPECT_LT(furthest(sum(probabilities, {-1}), ones({2, 4, 9}, {.dtype = DType::f64})), 1e-12);
    EXPECT_LT(furthest(mix_values(probabilities, v), attention(q, k, v, options)), 1e-12);
  }
}

struct Attentions {
  SelfAttention plain, dropping;
};
Attentions make_attentions(double p) {
  SelfAttentionOptions options{
      .heads = 4, .kv_heads = 2, .window = 7, .qk_norm = true, .rope = RopeOptions{}};
  SelfAttentionOptions with_dropout = options;
  with_dropout.dropout = p;
  with_dropout.dropout_site = 5;
  Random one(1), other(1);
  return {SelfAttention(16, one, options), SelfAttention(16, other, with_dropout)};
}

TEST(AttentionDropout, IsOffWithoutAKey) {
  const auto [plain, dropping] = make_attentions(0.5);
  const Tensor x = values("x", {2, 12, 16});
  ParameterScope f32({});
  const Tensor narrow = from_values(x.to_vector<float>(), x.shape());
  EXPECT_EQ(plain(narrow).to_vector<float>(), dropping(narrow).to_vector<float>());
  EXPECT_GT(furthest(plain(narrow), dropping(narrow, {.dropout_key = dropout_key(1, 0)})), 1e-3);
}

TEST(AttentionDropout, TheMeanOverKeysIsAttention) {
  const auto [plain, dropping] = make_attentions(0.25);
  NoGrad looking_only;
  const Tensor x = from_values(values("x", {2, 12, 16}).to_vector<float>(), {2, 12, 16});
  Tensor total = zeros({2, 12, 16});
  constexpr int kKeys = 3000;
  for (int step = 0; step < kKeys; ++step)
    total = total + dropping(x, {.dropout_key = dropout_key(7, step)});
  const double spread = furthest(plain(x), dropping(x, {.dropout_key = dropout_key(7, 0)}));
  EXPECT_LT(furthest(total / static_cast<double>(kKeys), plain(x)), 0.1 * spread);
}

// Every layer drops by itself, and elsewhere at every step.
TEST(AttentionDropout, ModelsTakeItFromTheirConfiguration) {
  Gpt2Config config{.vocab = 31, .context = 8, .layers = 2, .heads = 2, .width = 8};
  const TokenBatch batch = token_batch(1, 2, 8, 31);
  const auto loss = [&](double p, int64_t step) {
    config.attention_dropout = p;
    Random random(1);
    Gpt2 model(config, random);
    for (const NamedTensor& parameter : model.named_parameters()) fill_by_name(parameter);
    return model.loss(batch.tokens, batch.targets, {.dropout_key = dropout_key(1, step)})
        .item<double>();
  };
  EXPECT_EQ(loss(0, 0), loss(0, 1));
  EXPECT_EQ(loss(0.3, 0), loss(0.3, 0));
  EXPECT_NE(loss(0.3, 0), loss(0.3, 1));
  EXPECT_NE(loss(0.3, 0), loss(0, 0));

  const ModelConfig back = model_from_json(to_json(ModelConfig(config)));
  EXPECT_EQ(back.get<Gpt2Config>(), config);
  LlamaConfig latent = llama_preset("llama-mla-tiny");
  latent.attention_dropout = 0.1;
  Random random(1);
  EXPECT_THAT(error_of([&] { Llama(latent, random); }), testing::HasSubstr("attention_dropout"));
}

}  // namespace
}  // namespace brrr
