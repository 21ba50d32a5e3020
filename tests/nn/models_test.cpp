// What holds for every family behind the common interface: causality, documents, dropout keys, training in
// one compiled step with the bits of eager training.
#include "brrr/nn/models.h"

#include <gtest/gtest.h>

#include <cmath>

#include "brrr/autodiff/grad.h"
#include "brrr/nn/families/gemma2.h"
#include "brrr/nn/families/qwen3.h"
#include "brrr/ops/view/views.h"
#include "brrr/optim/optimizer.h"
#include "brrr/runtime/compile.h"
#include "support/counter_values.h"
#include "support/error_of.h"

namespace brrr {
namespace {

// Small enough to train in a moment, one of each kind.
std::vector<ModelConfig> kinds(double dropout = 0) {
  const LlamaConfig llama{.vocab = 32,
                          .context = 16,
                          .layers = 2,
                          .width = 16,
                          .heads = 4,
                          .kv_heads = 2,
                          .hidden = 24,
                          .dropout = dropout};
  LlamaConfig experts = llama, latent = llama;
  experts.experts = 4;
  latent.q_rank = 8, latent.kv_rank = 8, latent.nope_dim = 4, latent.rope_dim = 2,
  latent.value_dim = 4;
  const Qwen3Config qwen3{.vocab = 32,
                          .context = 16,
                          .layers = 2,
                          .width = 16,
                          .heads = 4,
                          .kv_heads = 2,
                          .head_dim = 6,
                          .hidden = 24,
                          .dropout = dropout};
  const Gemma2Config gemma2{.vocab = 32,
                            .context = 16,
                            .layers = 2,
                            .width = 16,
                            .heads = 4,
                            .kv_heads = 2,
                            .head_dim = 6,
                            .hidden = 24,
                            .window = 4,
                            .score_divisor = 6,
                            .score_cap = 5,
                            .logit_cap = 8,
                            .dropout = dropout};
  const RecurrentLmConfig lstm{.vocab = 32, .context = 16, .width = 16, .dropout = dropout};
  RecurrentLmConfig gru = lstm, rnn = lstm;
  gru.cell = Cell::gru;
  rnn.cell = Cell::rnn;
  return {Gpt2Config{
              .vocab = 32, .context = 16, .layers = 2, .heads = 2, .width = 16, .dropout = dropout},
          llama,
          experts,
          latent,
          qwen3,
          gemma2,
          lstm,
          gru,
          rnn};
}

TEST(Models, LaterTokensChangeNothingBefore) {
  for (ModelConfig config : kinds()) {
    // A mixture of experts with little room is not causal: later tokens may take it.
    if (auto* llama = config.get_if<LlamaConfig>()) llama->capacity_factor = 0;
    Random random(2);
    const auto model = make_model(config, random);
    const TokenBatch batch = token_batch(1, 2, 10, 32);
    const std::vector<float> before =
        slice(model->logits(batch.tokens), 1, {0, 6}).to_vector<float>();
    for (int64_t b : {0, 1}) store_int(batch.tokens, b * 10 + 6, 31);
    const Tensor after = model->logits(batch.tokens);
    EXPECT_EQ(slice(after, 1, {0, 6}).to_vector<float>(), before) << to_json(config);
    EXPECT_EQ(after.shape(), (Shape{2, 10, 32}));
  }
}

// A document behind another has the logits that it has alone, where positions are relative.
TEST(Models, DocumentsDoNotSeeEachOther) {
  for (ModelConfig config : kinds()) {
    if (shape_of(config).learned_positions > 0) continue;  // learned positions are absolute
    auto* llama = config.get_if<LlamaConfig>();
    if (llama && llama->experts > 0) continue;  // experts have room by the batch
    Random random(2);
    const auto model = make_model(config, random);
    const TokenBatch batch = token_batch(1, 1, 10, 32);
    const Tensor documents =
        from_values<int64_t>(std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1, 1, 1}, {1, 10});
    const std::vector<double>
        packed = slice(model->logits(batch.tokens, {.documents = documents}), 1, {4, 10})
                     .to_vector<double>(),
        alone = model->logits(slice(batch.tokens, 1, {4, 10})).to_vector<double>();
    for (size_t i = 0; i < alone.size(); ++i)
      ASSERT_NEAR(packed[i], alone[i], 1e-5) << to_json(config);  // angles differ in the last bits
  }
}

struct Trained {
  std::vector<float> losses;
  std::vector<std::vector<float>> weights;
  int programs = 0;
  bool operator==(const Trained& other) const {
    return losses == other.losses && weights == other.weights;
  }
};

// Twelve steps on one batch with dropout, whose key is an input of the step.
Trained train(const ModelConfig& config, bool compiled) {
  Random random(5);
  const auto model = make_model(config, random);
  AdamW optimizer(model->trainable_parameters(), {.weight_decay = 0.1});
  const TokenBatch batch = token_batch(1, 2, 12, 32);
  const auto step = [&](const Tensor& tokens, const Tensor& targets, const Tensor& key) {
    const Tensor loss = model->loss(tokens, targets, {.dropout_key = key});
    std::vector<Tensor> grads = grad(loss, optimizer.parameters());
    clip_global_norm(grads, 1.0);
    optimizer.update(grads, 1e-2);
    return loss.detach();
  };
  auto program = runtime::compile(step);
  Trained run;
  for (int64_t i = 0; i < 12; ++i) {
    const Tensor key = dropout_key(5, i);
    const Tensor loss = compiled ? program(batch.tokens, batch.targets, key)
                                 : step(batch.tokens, batch.targets, key);
    run.losses.push_back(loss.item<float>());
  }
  for (const Tensor& p : model->parameters()) run.weights.push_back(p.to_vector<float>());
  run.programs = program.function().programs();
  return run;
}

TEST(Models, EveryKindTrainsCompiledAsEager) {
  for (double dropout : {0.0, 0.2}) {
    for (const ModelConfig& config : kinds(dropout)) {
      const Trained eager = train(config, false), compiled = train(config, true);
      EXPECT_TRUE(compiled == eager) << to_json(config);
      EXPECT_EQ(compiled.programs, 1);
      EXPECT_LT(eager.losses.back(), eager.losses.front() - 0.3) << to_json(config);
    }
  }
}

TEST(Models, DropoutNeedsAKeyAndFollowsIt) {
  for (const ModelConfig& config : kinds(0.5)) {
    Random random(2), same(2);
    const auto model = make_model(config, random);
    const TokenBatch batch = token_batch(1, 2, 8, 32);
    const auto loss = [&](const ForwardInputs& inputs) {
      return model->loss(batch.tokens, batch.targets, inputs).item<float>();
    };
    EXPECT_EQ(loss({}), loss({}));
    EXPECT_EQ(loss({.dropout_key = dropout_key(1, 0)}), loss({.dropout_key = dropout_key(1, 0)}));
    EXPECT_NE(loss({.dropout_key = dropout_key(1, 0)}), loss({}));
    EXPECT_NE(loss({.dropout_key = dropout_key(1, 0)}), loss({.dropout_key = dropout_key(1, 1)}));
    EXPECT_NE(loss({.dropout_key = dropout_key(1, 0)}), loss({.dropout_key = dropout_key(2, 0)}));
  }
}

TEST(Models, RefuseWhatDoesNotFit) {
  Random random(4);
  for (const ModelConfig& config : kinds()) {
    const auto model = make_model(config, random);
    const TokenBatch batch = token_batch(0, 1, 17, 32);
    EXPECT_NE(error_of([&] { model->logits(batch.tokens); }).find("context of 16"),
              std::string::npos);
    EXPECT_NE(error_of([&] { model->logits(select(batch.tokens, 0, 0)); }).find("[batch, seq]"),
              std::string::npos);
  }
  EXPECT_NE(error_of([&] {
              Llama({.vocab = 8, .width = 16, .heads = 4, .kv_heads = 3}, random);
            }).find("do not share 3"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              Llama({.vocab = 8, .width = 16, .heads = 4, .experts = 2, .top_k = 3}, random);
            }).find("cannot choose 3 of 2"),
            std::string::npos);
}

// One token after another gives what the whole sequence gives.
TEST(Models, RecurrentModelsAdvance) {
  Random random(6);
  const RecurrentLm model({.vocab = 32, .context = 16, .layers = 2, .width = 8}, random);
  const TokenBatch batch = token_batch(1, 2, 5, 32);
  const std::vector<float> whole = select(model.logits(batch.tokens), 1, 4).to_vector<float>();
  RecurrentState state;
  Tensor last;
  for (int64_t t = 0; t < 5; ++t) {
    RecurrentResult result = model.advance(slice(batch.tokens, 1, {t, t + 1}), state);
    state = std::move(result.state);
    last = model.head(result.output);
  }
  const std::vector<float> stepped = last.to_vector<float>();
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(stepped[i], whole[i], 1e-6);
}

}  // namespace
}  // namespace brrr
