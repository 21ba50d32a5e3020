// Text from models: the same whatever the batch, the same as a naive loop, and that of llama2.c.
#include "brrr/infer/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "brrr/nn/models.h"
#include "support/counter_values.h"
#include "support/error_of.h"
#include "support/llama2c.h"
#include "support/shared_data.h"

namespace brrr {
namespace {

using testing::HasSubstr;

std::unique_ptr<LanguageModel> small_model(int64_t context = 32) {
  Random random(1);
  auto model = make_model(
      LlamaConfig{
          .vocab = 31, .context = context, .layers = 2, .width = 16, .heads = 2, .hidden = 24},
      random);
  for (const NamedTensor& parameter : model->named_parameters()) fill_by_name(parameter);
  return model;
}

// The whole sequence for every token, in eager ops.
std::vector<int32_t> naive(const LanguageModel& model, std::vector<int32_t> tokens, int64_t count,
                           const SamplingOptions& sampling, uint32_t sample) {
  NoGrad inference;
  const size_t prompt = tokens.size();
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<int64_t> wide(tokens.begin(), tokens.end());
    const auto length = static_cast<int64_t>(wide.size());
    const auto logits =
        model.logits(from_values(wide, {1, length}))[0][length - 1].to_vector<float>();
    tokens.push_back(sample_token(logits, tokens, sampling, {sample, tokens.size()}));
  }
  return {tokens.begin() + static_cast<int64_t>(prompt), tokens.end()};
}

TEST(Generator, WritesWhatTheNaiveLoopWrites) {
  const auto model = small_model();
  infer::Generator generator(*model, {.prefill_block = 4});
  const std::vector<std::vector<int32_t>> prompts{{5}, {1, 2, 3, 4, 5, 6, 7}, {9, 9}};
  for (double temperature : {0.0, 1.0}) {
    const infer::GenerateOptions options{
        .tokens = 20,
        .sampling = {
            .temperature = temperature, .top_k = 12, .repetition_penalty = 1.1, .seed = 4}};
    const auto together = generator.generate_all(prompts, options);
    for (size_t row = 0; row < prompts.size(); ++row) {
      const auto sample = static_cast<uint32_t>(row);
      EXPECT_EQ(together[row].ids, naive(*model, prompts[row], 20, options.sampling, sample));
      infer::GenerateOptions alone = options;
      alone.first_sample = sample;
      EXPECT_EQ(generator.generate(prompts[row], alone), together[row].ids) << "row " << row;
    }
  }
  EXPECT_EQ(generator.decoder(3).programs(), 2);
  EXPECT_EQ(generator.decoder(1).programs(), 2);
}

TEST(Generator, HandsTokensOverAsTheyCome) {
  const auto model = small_model();
  infer::Generator generator(*model);
  std::vector<int32_t> taken;
  const auto ids = generator.generate(std::vector<int32_t>{1, 2}, {.tokens = 8},
                                      [&](int32_t token) { taken.push_back(token); });
  EXPECT_EQ(taken, ids);
  EXPECT_EQ(ids.size(), 8U);
}

TEST(Generator, StopsRowsByThemselves) {
  const auto model = small_model();
  infer::Generator generator(*model);
  const std::vector<std::vector<int32_t>> prompts{{1}, {2}, {3}, {4}};
  infer::GenerateOptions options{.tokens = 25, .sampling = {.seed = 1}};
  const auto free = generator.generate_all(prompts, options);
  options.stop = free[0].ids[3];
  const auto stopped = generator.generate_all(prompts, options);
  for (size_t row = 0; row < prompts.size(); ++row) {
    const auto& all = free[row].ids;
    const auto end = std::find(all.begin(), all.end(), *options.stop);
    EXPECT_EQ(stopped[row].ids, std::vector<int32_t>(all.begin(), end)) << row;
    EXPECT_EQ(stopped[row].stopped, end != all.end());
  }
}

// Past the context a text goes on from its last half.
TEST(Generator, GoesOnPastTheContext) {
  const auto model = small_model(16);
  infer::Generator generator(*model, {.prefill_block = 4});
  const infer::GenerateOptions options{.tokens = 40, .sampling = {.temperature = 0}};
  const std::vector<int32_t> prompt{1, 2, 3};
  const auto ids = generator.generate(prompt, options);
  ASSERT_EQ(ids.size(), 40U);
  // 14 tokens are drawn until the 16th place is fed; the next one follows the last 8.
  std::vector<int32_t> text = prompt;
  text.insert(text.end(), ids.begin(), ids.begin() + 14);
  const std::vector<int32_t> half(text.end() - 8, text.end());
  EXPECT_EQ(ids[14], naive(*model, half, 1, options.sampling, 0)[0]);

  infer::GenerateOptions ends = options;
  ends.context_end = infer::ContextEnd::stop;
  EXPECT_EQ(generator.generate(prompt, ends), std::vector<int32_t>(ids.begin(), ids.begin() + 14));
}

TEST(Generator, ReadsTheEndOfAPromptThatIsTooLong) {
  const auto model = small_model(16);
  infer::Generator generator(*model);
  const infer::GenerateOptions options{.tokens = 1, .sampling = {.temperature = 0}};
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 30; ++i) prompt.push_back(i);
  const std::vector<int32_t> last(prompt.end() - 15, prompt.end());
  EXPECT_EQ(generator.generate(prompt, options), naive(*model, last, 1, options.sampling, 0));
}

// ---- Draws where the logits are: the same texts, one token ahead of the host.

struct Told {
  std::vector<infer::Generation> results;
  std::vector<std::pair<int64_t, int32_t>> taken;  // row and token, as they came
};

Told tell(const LanguageModel& model, const std::vector<std::vector<int32_t>>& prompts,
          const infer::GenerateOptions& options, infer::DrawOn draw_on) {
  infer::Generator generator(model, {.prefill_block = 4, .draw_on = draw_on});
  Told told;
  told.results = generator.generate_all(
      prompts, options, [&](int64_t row, int32_t token) { told.taken.emplace_back(row, token); });
  return told;
}

void expect_same_texts(const LanguageModel& model, const std::vector<std::vector<int32_t>>& prompts,
                       const infer::GenerateOptions& options) {
  const Told host = tell(model, prompts, options, infer::DrawOn::host),
             device = tell(model, prompts, options, infer::DrawOn::device);
  EXPECT_EQ(device.taken, host.taken);
  for (size_t row = 0; row < prompts.size(); ++row) {
    EXPECT_EQ(device.results[row].ids, host.results[row].ids) << "row " << row;
    EXPECT_EQ(device.results[row].stopped, host.results[row].stopped) << "row " << row;
  }
}

class WithoutCache : public Gpt2 {
 public:
  using Gpt2::Gpt2;
  bool supports_cache() const override { return false; }
};

// Prompts of one token, of whole blocks, of a block and one more; rows that end by themselves; texts past the
// context, which slide or stop.
TEST(Generator, DrawsOnTheDeviceWhatItDrawsOnTheHost) {
  Random random(1);
  WithoutCache gpt2({.vocab = 31, .context = 16, .layers = 1, .heads = 2, .width = 16}, random);
  for (const NamedTensor& parameter : gpt2.named_parameters()) fill_by_name(parameter);
  const auto llama = small_model(16);
  const std::vector<std::vector<std::vector<int32_t>>> calls{
      {{5}},
      {{1, 2, 3, 4}},
      {{1, 2, 3, 4, 5}},
      {{5},
       {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18},
       {9, 9},
       {7, 6, 5, 4, 3}}};
  const SamplingOptions free{.seed = 4}, cut{.temperature = 1.2,
                                             .top_k = 12,
                                             .top_p = 0.9,
                                             .min_p = 0.01,
                                             .repetition_penalty = 1.3,
                                             .seed = 9};
  for (const LanguageModel* model :
       {static_cast<const LanguageModel*>(llama.get()), static_cast<const LanguageModel*>(&gpt2)}) {
    for (const auto& prompts : calls) {
      for (const SamplingOptions& sampling : {free, cut, SamplingOptions{.temperature = 0}}) {
        for (infer::ContextEnd end : {infer::ContextEnd::slide, infer::ContextEnd::stop}) {
          infer::GenerateOptions options{
              .tokens = 37, .sampling = sampling, .context_end = end, .first_sample = 3};
          expect_same_texts(*model, prompts, options);
          const std::vector<int32_t> ids =
              tell(*model, prompts, options, infer::DrawOn::host).results[0].ids;
          ASSERT_FALSE(ids.empty());
          options.stop = ids[std::min<size_t>(3, ids.size() - 1)];
          expect_same_texts(*model, prompts, options);
        }
      }
    }
  }
}

// One generator for several calls: what a call left behind in the decoder does not show in the next.
TEST(Generator, CallsThatDrawOnTheDeviceDoNotMeet) {
  const auto model = small_model();
  infer::Generator device(*model, {.draw_on = infer::DrawOn::device}),
      host(*model, {.draw_on = infer::DrawOn::host});
  const std::vector<int32_t> prompts[] = {{1}, {2, 3}, {4, 5, 6}, {1}};
  for (double penalty : {1.0, 1.5, 1.0, 2.0}) {
    for (const std::vector<int32_t>& prompt : prompts) {
      infer::GenerateOptions options{.tokens = 9,
                                     .sampling = {.repetition_penalty = penalty, .seed = 5}};
      const auto expected = host.generate(prompt, options);
      EXPECT_EQ(device.generate(prompt, options), expected);
      options.stop = expected[2];  // a draw is under way when the text ends
      EXPECT_EQ(device.generate(prompt, options), host.generate(prompt, options));
    }
  }
  EXPECT_EQ(device.decoder(1).programs(), 3) << "blocks, draws, draws with a penalty";
}

TEST(Generator, SaysWhichLogitIsNoNumberWhereverItDraws) {
  const auto model = small_model();
  NoGrad writing;
  for (const NamedTensor& parameter : model->named_parameters())
    parameter.tensor.fill(std::nanf(""));
  for (infer::DrawOn draw_on : {infer::DrawOn::host, infer::DrawOn::device}) {
    infer::Generator generator(*model, {.draw_on = draw_on});
    EXPECT_THAT(error_of([&] { generator.generate(std::vector<int32_t>{1}, {.tokens = 3}); }),
                HasSubstr("sampling: the logit of token 0 is nan; the model computes no usable"));
  }
}

TEST(Generator, WantsSomethingToBeginWith) {
  const auto model = small_model();
  infer::Generator generator(*model);
  EXPECT_THAT(error_of([&] { generator.generate({}, {}); }), HasSubstr("empty prompt"));
  EXPECT_TRUE(generator.generate(std::vector<int32_t>{1}, {.tokens = 0}).empty());
}

TEST(Generator, WritesTheStoryOfLlama2c) {
  const std::optional<Stories260k> stories = load_stories260k();
  if (!stories) GTEST_SKIP() << "no stories260K";
  const auto& [model, pieces, expected] = *stories;
  infer::Generator generator(*model);
  std::string text;
  generator.generate(std::vector<int32_t>{1}, {.tokens = 199, .sampling = {.temperature = 0}},
                     [&](int32_t token) { text += pieces[static_cast<size_t>(token)]; });
  if (text.starts_with(" ")) text.erase(0, 1);
  const std::string theirs = expected;
  ASSERT_GT(text.size(), 400U);
  EXPECT_EQ(theirs.substr(0, text.size()), text.substr(0, theirs.size()));
}

}  // namespace
}  // namespace brrr
