// The gradients of every family against central differences in f64, one parameter at a time along a fixed
// direction that weighs each of its elements differently.
#include <gtest/gtest.h>

#include <functional>

#include "brrr/autodiff/grad.h"
#include "brrr/nn/classifiers.h"
#include "brrr/nn/families/gemma2.h"
#include "brrr/nn/families/qwen3.h"
#include "brrr/nn/models.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/reduce/reduce.h"
#include "support/counter_values.h"

namespace brrr {
namespace {

void expect_slopes(const Module& model, const std::function<Tensor()>& loss) {
  constexpr double kStep = 1e-5;
  const std::vector<NamedTensor> parameters = model.named_parameters();
  for (const NamedTensor& parameter : parameters) fill_by_name(parameter);
  const std::vector<Tensor> grads = grad(loss(), model.parameters());
  NoGrad values_only;
  for (size_t i = 0; i < grads.size(); ++i) {
    const auto& [name, p] = parameters[i];
    const Tensor direction = from_values(counter_values("direction", p.numel(), 1.0), p.shape());
    const double slope = sum(grads[i] * direction).item<double>();
    const Tensor start = clone(p.detach());
    p.copy_from(start + direction * kStep);
    const double above = loss().item<double>();
    p.copy_from(start - direction * kStep);
    const double below = loss().item<double>();
    p.copy_from(start);
    // The third derivative times step^2, and the rounding of the losses divided by the step.
    EXPECT_NEAR(slope, (above - below) / (2 * kStep), 1e-7 + 1e-5 * std::fabs(slope)) << name;
  }
}

void expect_slopes_of(const ModelConfig& config, const ForwardInputs& inputs = {}) {
  ParameterScope f64({.dtype = DType::f64});
  Random random(1);
  const auto model = make_model(config, random);
  const TokenBatch batch = token_batch(3, 2, 7, model->vocab());
  expect_slopes(*model, [&] { return model->loss(batch.tokens, batch.targets, inputs); });
}

constexpr LlamaConfig kLlama{
    .vocab = 11, .context = 8, .layers = 2, .width = 8, .heads = 2, .kv_heads = 1, .hidden = 12};

TEST(ModelGradients, Gpt2) {
  const Gpt2Config config{.vocab = 11, .context = 8, .layers = 2, .heads = 2, .width = 8};
  expect_slopes_of(config);
  Gpt2Config without_bias = config;
  without_bias.bias = false;
  expect_slopes_of(without_bias);
}
TEST(ModelGradients, DropoutInsideAttention) {
  expect_slopes_of(
      Gpt2Config{
          .vocab = 11, .context = 8, .layers = 2, .heads = 2, .width = 8, .attention_dropout = 0.3},
      {.dropout_key = dropout_key(4, 2)});
  LlamaConfig grouped = kLlama;
  grouped.attention_dropout = 0.3;
  expect_slopes_of(grouped, {.dropout_key = dropout_key(4, 2)});
}
// The mask of a key is the same at every call.
TEST(ModelGradients, Gpt2WithDropout) {
  expect_slopes_of(
      Gpt2Config{.vocab = 11, .context = 8, .layers = 2, .heads = 2, .width = 8, .dropout = 0.3},
      {.dropout_key = dropout_key(5, 0)});
}
TEST(ModelGradients, Llama) {
  expect_slopes_of(kLlama);
  LlamaConfig all = kLlama;
  all.tied = all.qkv_bias = all.qk_norm = true;
  all.window = 3;
  expect_slopes_of(all);
}
TEST(ModelGradients, Qwen3) {
  const Qwen3Config config{.vocab = 11,
                           .context = 8,
                           .layers = 2,
                           .width = 8,
                           .heads = 2,
                           .kv_heads = 1,
                           .head_dim = 6,
                           .hidden = 12};
  expect_slopes_of(config);
}
// Bounds near the values that they bound, so that their slopes count.
TEST(ModelGradients, Gemma2) {
  Gemma2Config config{.vocab = 11,
                      .context = 8,
                      .layers = 2,
                      .width = 8,
                      .heads = 2,
                      .kv_heads = 1,
                      .head_dim = 6,
                      .hidden = 12,
                      .window = 3,
                      .score_divisor = 5,
                      .score_cap = 1.5,
                      .logit_cap = 2};
  expect_slopes_of(config);
  config.attention_dropout = 0.3;
  expect_slopes_of(config, {.dropout_key = dropout_key(4, 2)});
}
TEST(ModelGradients, LlamaOfExperts) {
  LlamaConfig config = kLlama;
  config.experts = 3;
  config.balance_weight = 0.5;
  config.shared_expert_hidden = 4;
  config.capacity_factor = 0.8;  // some tokens find no room
  expect_slopes_of(config);
}
TEST(ModelGradients, LlamaWithLatentAttention) {
  LlamaConfig config = kLlama;
  config.q_rank = 6;
  config.kv_rank = 5;
  config.nope_dim = 4;
  config.rope_dim = 2;
  config.value_dim = 3;
  expect_slopes_of(config);
  config.q_rank = 0;
  expect_slopes_of(config);
}
TEST(ModelGradients, Recurrent) {
  for (Cell cell : {Cell::rnn, Cell::gru, Cell::lstm})
    expect_slopes_of(
        RecurrentLmConfig{.cell = cell, .vocab = 11, .context = 8, .layers = 2, .width = 6});
}
TEST(ModelGradients, RecurrentOverDocuments) {
  const Tensor documents =
      from_values<int64_t>(std::vector<int64_t>{0, 0, 1, 1, 1, 2, 2, 4, 4, 4, 4, 4, 5, 5}, {2, 7});
  expect_slopes_of(
      RecurrentLmConfig{.vocab = 11, .context = 8, .layers = 2, .width = 6, .tied = true},
      {.documents = documents});
}

TEST(ModelGradients, Classifiers) {
  ParameterScope f64({.dtype = DType::f64});
  Random random(1);
  const Tensor labels = from_values<int64_t>(std::vector<int64_t>{2, 0, 1}, {3});
  const Tensor images = from_values(counter_values("images", 3 * 2 * 8 * 8, 1.0), {3, 2, 8, 8});
  const Mlp mlp({.inputs = 128, .hidden = {7, 5}, .outputs = 4, .activation = Activation::gelu},
                random);
  expect_slopes(mlp, [&] { return cross_entropy(mlp(images), labels); });
  // Smooth activations: relu has no slope at 0. The largest of a window is decided far from ties.
  const Cnn cnn({.channels = 2,
                 .height = 8,
                 .width = 8,
                 .filters = {3, 4},
                 .hidden = 6,
                 .outputs = 4,
                 .activation = Activation::tanh},
                random);
  expect_slopes(cnn, [&] { return cross_entropy(cnn(images), labels); });
}

}  // namespace
}  // namespace brrr
