#include "brrr/nn/families/gpt2.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "brrr/autodiff/grad.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/optim/optimizer.h"
#include "brrr/runtime/compile.h"
#include "support/error_of.h"
#include "support/square_tokens.h"

namespace brrr {
namespace {

// The published sizes, to the unit.
TEST(Gpt2, ParameterCounts) {
  EXPECT_EQ(gpt2_preset("gpt2-124m").parameter_count(), 124'439'808);
  EXPECT_EQ(gpt2_preset("gpt2-350m").parameter_count(), 354'823'168);
  EXPECT_EQ(gpt2_preset("gpt2-774m").parameter_count(), 774'030'080);
  EXPECT_EQ(gpt2_preset("gpt2-1558m").parameter_count(), 1'557'611'200);
  Random random(1);
  const Gpt2 tiny(gpt2_preset("gpt2-tiny"), random);
  EXPECT_EQ(tiny.parameter_count(), gpt2_preset("gpt2-tiny").parameter_count());
}

TEST(Gpt2, NamesItsParts) {
  Random random(1);
  const Gpt2 model(gpt2_preset("gpt2-tiny"), random);
  const std::vector<NamedTensor> parameters = model.named_parameters();
  EXPECT_EQ(parameters.front().name, "wte.weight");
  EXPECT_EQ(parameters[4].name, "h.0.attn.c_attn.weight");
  EXPECT_EQ(parameters.back().name, "ln_f.bias");
  EXPECT_EQ(parameters[4].tensor.shape(), (Shape{192, 64}));
  EXPECT_NE(error_of([] { gpt2_preset("gpt5"); }).find("gpt2-124m"), std::string::npos);
}

// Before training every token is as likely as any other.
TEST(Gpt2, StartsAtTheLogOfTheVocabulary) {
  Random random(2);
  const Gpt2 model(gpt2_preset("gpt2-tiny"), random);
  const SquareTokens batch({2, 16}, 256);
  EXPECT_NEAR(model.loss(batch.tokens, batch.targets).item<double>(), std::log(256.0), 0.05);
}

// A model with its optimizer, one step at a time.
struct Training {
  Random random{3};
  Gpt2 model{gpt2_preset("gpt2-tiny"), random};
  AdamW optimizer;

  Training() : optimizer(model.named_parameters(), AdamWOptions{.weight_decay = 0.1}) {}
  Tensor step(const Tensor& tokens, const Tensor& targets, const Tensor& rate) {
    const Tensor loss = model.loss(tokens, targets);
    std::vector<Tensor> grads = grad(loss, optimizer.parameters());
    clip_global_norm(grads, 1.0);
    optimizer.update(grads, rate);
    return loss.detach();
  }
};

std::vector<float> losses_of(const std::function<Tensor(const Tensor&)>& step) {
  std::vector<float> losses;
  for (int i = 0; i < 20; ++i) losses.push_back(step(full({}, 1e-2)).item<float>());
  return losses;
}

TEST(Gpt2, CompiledTrainsLikeEager) {
  const SquareTokens batch({2, 16}, 256);
  Training eager;
  const std::vector<float> expected =
      losses_of([&](const Tensor& rate) { return eager.step(batch.tokens, batch.targets, rate); });
  EXPECT_LT(expected.back(), 0.5 * expected.front());

  std::vector<std::string_view> left_out = compiler::optimising_passes();
  left_out.emplace_back();  // none
  for (std::string_view pass : left_out) {
    const compiler::PipelineOptions options =
        pass.empty() ? compiler::PipelineOptions() : compiler::without({}, pass);
    Training training;
    auto step = runtime::compile([&](const Tensor& x, const Tensor& y,
                                     const Tensor& rate) { return training.step(x, y, rate); },
                                 options);
    EXPECT_EQ(
        losses_of([&](const Tensor& rate) { return step(batch.tokens, batch.targets, rate); }),
        expected)
        << "without " << pass;
    const std::vector<Tensor> found = training.model.parameters(),
                              wanted = eager.model.parameters();
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_EQ(found[i].to_vector<float>(), wanted[i].to_vector<float>())
          << training.model.named_parameters()[i].name;
  }
}

TEST(Gpt2, CompiledThreadsDoNotMatter) {
  const SquareTokens batch({2, 32}, 256);
  std::vector<float> first;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    Training training;
    auto step = runtime::compile([&](const Tensor& x, const Tensor& y, const Tensor& rate) {
      return training.step(x, y, rate);
    });
    const std::vector<float> losses =
        losses_of([&](const Tensor& rate) { return step(batch.tokens, batch.targets, rate); });
    if (first.empty()) first = losses;
    EXPECT_EQ(losses, first) << threads << " threads";
  }
  set_num_threads(available_cores());
}

TEST(Gpt2, RefusesWhatDoesNotFit) {
  Random random(4);
  const Gpt2 model(gpt2_preset("gpt2-tiny"), random);
  const SquareTokens batch({1, 65}, 256);
  EXPECT_NE(error_of([&] { model.logits(batch.tokens); }).find("context of 64"), std::string::npos);
  EXPECT_NE(error_of([&] { Gpt2({.heads = 5, .width = 64}, random); }).find("5 heads"),
            std::string::npos);
}

}  // namespace
}  // namespace brrr
