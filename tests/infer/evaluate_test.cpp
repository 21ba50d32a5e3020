// Losses of whole texts, against the definition: one token at a time from what stands before it.
#include "brrr/infer/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "brrr/nn/models.h"
#include "brrr/ops/view/views.h"
#include "support/counter_values.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::HasSubstr;

std::unique_ptr<LanguageModel> small_model() {
  Random random(1);
  auto model = make_model(
      Gpt2Config{.vocab = 257, .context = 10, .layers = 1, .heads = 2, .width = 12}, random);
  for (const NamedTensor& parameter : model->named_parameters()) fill_by_name(parameter);
  return model;
}

TokenSet tokens_in_memory(int64_t count, std::vector<uint64_t> starts = {}) {
  TokensInMemory memory{
      .name = "memory", .tokens = {}, .document_starts = std::move(starts), .vocab_size = 257};
  for (int64_t i = 0; i < count; ++i)
    memory.tokens.push_back(static_cast<int32_t>(hashed(static_cast<uint32_t>(i)) % 257));
  return whole_file(TokenFile::from_memory(std::move(memory)));
}

// Windows of `context` tokens, each scored by itself.
double brute_force_nats(const LanguageModel& model, const TokenSet& tokens, int64_t context) {
  NoGrad inference;
  std::vector<int64_t> all(static_cast<size_t>(tokens.token_count()));
  tokens.ranges[0].file->read(0, all);
  double nats = 0;
  for (size_t at = 0; at + 1 < all.size(); at += static_cast<size_t>(context)) {
    const size_t count = std::min(static_cast<size_t>(context), all.size() - 1 - at);
    const std::vector<int64_t> window(all.begin() + static_cast<int64_t>(at),
                                      all.begin() + static_cast<int64_t>(at + count));
    const Tensor logits = model.logits(from_values(window, {1, static_cast<int64_t>(count)}))[0];
    for (size_t i = 0; i < count; ++i) {
      const std::vector<double> row = logits[static_cast<int64_t>(i)].to_vector<double>();
      double total = 0;
      for (double logit : row) total += std::exp(logit);
      nats += std::log(total) - row[static_cast<size_t>(all[at + i + 1])];
    }
  }
  return nats;
}

TEST(Evaluate, EveryTokenButTheFirstIsPredictedOnce) {
  const auto model = small_model();
  const auto bytes = text::make_tokenizer(
      text::define_byte_tokenizer(std::vector<std::string>{std::string(text::kEndOfText)}));
  for (int64_t count : {2, 10, 11, 12, 57}) {
    for (int64_t batch : {1, 4}) {
      const TokenSet tokens = tokens_in_memory(count);
      infer::Evaluator evaluator(*model, tokens, {.batch = batch, .documents = false}, bytes.get());
      const infer::Evaluation result = evaluator.run();
      const double nats = brute_force_nats(*model, tokens, 10);
      EXPECT_EQ(result.tokens, count - 1);
      EXPECT_NEAR(result.loss, nats / static_cast<double>(count - 1), 1e-5) << count;
      EXPECT_NEAR(result.perplexity, std::exp(result.loss), 1e-9);
      ASSERT_TRUE(result.bits_per_byte);
      EXPECT_NEAR(*result.bits_per_byte,
                  nats / std::numbers::ln2 / static_cast<double>(result.bytes), 1e-4);
    }
  }
}

TEST(Evaluate, SpecialTokensHaveNoBytes) {
  const auto model = small_model();
  const auto bytes = text::make_tokenizer(
      text::define_byte_tokenizer(std::vector<std::string>{std::string(text::kEndOfText)}));
  TokensInMemory memory{
      .name = "memory", .tokens = {65, 66, 256, 67}, .document_starts = {}, .vocab_size = 257};
  infer::Evaluator evaluator(*model, whole_file(TokenFile::from_memory(std::move(memory))), {},
                             bytes.get());
  const infer::Evaluation result = evaluator.run();
  EXPECT_EQ(result.tokens, 3);
  EXPECT_EQ(result.bytes, 2);
}

TEST(Evaluate, DocumentsDoNotSeeEachOther) {
  const auto model = small_model();
  const TokenSet apart = tokens_in_memory(10, {0, 6}), together = tokens_in_memory(10);
  const double own = infer::Evaluator(*model, apart).run().loss,
               all = infer::Evaluator(*model, together).run().loss;
  EXPECT_NE(own, all);
  infer::Evaluator blind(*model, apart, {.documents = false});
  EXPECT_NEAR(blind.run().loss, all, 1e-7);
}

// Documents of 4, 3, 5 and 20 tokens in windows of 10: the first two, the third, and the last in parts.
TEST(Evaluate, WindowsBeginWhereDocumentsDo) {
  const auto model = small_model();
  const TokenSet tokens = tokens_in_memory(32, {0, 4, 7, 12});
  infer::Evaluator whole(*model, tokens), even(*model, tokens, {.whole_documents = false});
  EXPECT_EQ(whole.windows(), 4);
  EXPECT_EQ(even.windows(), 4);
  const infer::Evaluation result = whole.run(), other = even.run();
  EXPECT_EQ(result.tokens, 31);
  EXPECT_EQ(other.tokens, 31);
  EXPECT_NE(result.loss, other.loss);
}

TEST(Evaluate, SeesParametersChangeAndSpreadsFewWindows) {
  const auto model = small_model();
  infer::Evaluator evaluator(*model, tokens_in_memory(200), {.batch = 2, .max_batches = 3});
  EXPECT_EQ(evaluator.windows(), 6);
  const double before = evaluator.run().loss;
  EXPECT_EQ(evaluator.run().loss, before);
  for (const Tensor& parameter : model->parameters()) {
    NoGrad writing;
    parameter.fill(0);
  }
  EXPECT_NEAR(evaluator.run().loss, std::log(257.0), 1e-5) << "zeros know nothing";
}

TEST(Evaluate, SaysWhatDoesNotFit) {
  const auto model = small_model();
  EXPECT_THAT(error_of([&] { infer::Evaluator(*model, tokens_in_memory(1)); }),
              HasSubstr("at least two"));
  EXPECT_THAT(error_of([&] { infer::Evaluator(*model, tokens_in_memory(20), {.context = 11}); }),
              HasSubstr("the model takes 1 to 10"));
  TokensInMemory foreign{
      .name = "foreign", .tokens = {1, 999}, .document_starts = {}, .vocab_size = 1000};
  EXPECT_THAT(
      error_of([&] {
        infer::Evaluator(*model, whole_file(TokenFile::from_memory(std::move(foreign)))).run();
      }),
      HasSubstr("another tokenizer"));
}

}  // namespace
}  // namespace brrr
