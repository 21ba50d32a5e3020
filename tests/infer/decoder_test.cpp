// A model that goes on from its cache says what it says of the whole sequence: for every family, however
// the tokens are cut into calls, and for rows of different lengths.
#include "brrr/infer/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/nn/families/gemma2.h"
#include "brrr/nn/families/qwen3.h"
#include "brrr/nn/models.h"
#include "support/counter_values.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::HasSubstr;

// Blocks of tokens go through the products of whole sequences, and have their bits. Attention meets a
// single query by dot products, another order of additions; latent attention multiplies in another order.
enum class SameBits : uint8_t { always, in_blocks, never };

struct Family {
  std::string name;
  ModelConfig config;
  SameBits same_bits = SameBits::in_blocks;
};

// Small, and of sizes that are no multiple of a vector or a block.
std::vector<Family> families() {
  const LlamaConfig llama{.vocab = 53,
                          .context = 40,
                          .layers = 2,
                          .width = 24,
                          .heads = 4,
                          .kv_heads = 2,
                          .hidden = 40};
  LlamaConfig window = llama, norm = llama, experts = llama, latent = llama, latent_q = llama,
              stretched = llama;
  window.window = 5;
  norm.qk_norm = true;
  norm.head_dim = 10;
  norm.qkv_bias = true;
  experts.experts = 4;
  experts.capacity_factor = 0;
  experts.shared_expert_hidden = 8;
  stretched.rope_stretch = RopeStretch::llama3;
  stretched.rope_factor = 8;
  stretched.rope_trained_context = 64;
  latent.kv_rank = 12;
  latent.nope_dim = 6;
  latent.rope_dim = 4;
  latent.value_dim = 5;
  latent_q = latent;
  latent_q.q_rank = 9;
  latent_q.window = 7;
  const Qwen3Config qwen3{.vocab = 53,
                          .context = 40,
                          .layers = 2,
                          .width = 24,
                          .heads = 4,
                          .kv_heads = 2,
                          .head_dim = 10,
                          .hidden = 40};
  const Gemma2Config gemma2{.vocab = 53,
                            .context = 40,
                            .layers = 3,
                            .width = 24,
                            .heads = 4,
                            .kv_heads = 2,
                            .head_dim = 10,
                            .hidden = 40,
                            .window = 5,
                            .score_divisor = 12,
                            .score_cap = 3,
                            .logit_cap = 4};
  const RecurrentLmConfig lstm{.vocab = 53, .context = 40, .layers = 2, .width = 20};
  RecurrentLmConfig gru = lstm;
  gru.cell = Cell::gru;
  return {{"gpt2", Gpt2Config{.vocab = 53, .context = 40, .layers = 2, .heads = 3, .width = 24}},
          {"llama", llama},
          {"window", window},
          {"qk_norm", norm},
          {"experts", experts},
          {"latent", latent, SameBits::never},
          {"latent_q", latent_q, SameBits::never},
          {"lstm", lstm, SameBits::always},
          {"gru", gru, SameBits::always},
          {"stretched", stretched},
          {"qwen3", qwen3},
          {"gemma2", gemma2}};
}

std::unique_ptr<LanguageModel> model_of(const Family& family) {
  Random random(1);
  auto model = make_model(family.config, random);
  for (const NamedTensor& parameter : model->named_parameters()) fill_by_name(parameter);
  return model;
}

std::vector<int32_t> tokens_of(int64_t count, uint32_t seed) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>(hashed(seed * 1000 + static_cast<uint32_t>(i)) % 53));
  return tokens;
}

// The logits behind the last token, from the whole sequence in eager ops.
std::vector<float> whole_logits(const LanguageModel& model, const std::vector<int32_t>& tokens) {
  NoGrad inference;
  const std::vector<int64_t> wide(tokens.begin(), tokens.end());
  const auto count = static_cast<int64_t>(tokens.size());
  return model.logits(from_values(wide, {1, count}))[0][count - 1].to_vector<float>();
}

void expect_logits(const Family& family, const Tensor& actual, int64_t row,
                   const std::vector<float>& expected, const std::string& where,
                   bool only_blocks = false) {
  const std::vector<float> values = actual[row].to_vector<float>();
  double largest = 0, furthest = 0;
  int64_t different = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::fabs(double{expected[i]}));
    furthest = std::max(furthest, std::fabs(double{values[i]} - expected[i]));
    different += values[i] != expected[i];
  }
  EXPECT_LE(furthest, 1e-5 * largest) << family.name << ", " << where;
  if (family.same_bits == SameBits::always ||
      (only_blocks && family.same_bits == SameBits::in_blocks)) {
    EXPECT_EQ(different, 0) << family.name << ", " << where << ": bits of " << expected.size();
  }
}

TEST(Decoder, OneTokenAtATimeSaysWhatTheWholeSequenceSays) {
  for (const Family& family : families()) {
    const auto model = model_of(family);
    ASSERT_TRUE(model->supports_cache()) << family.name;
    infer::Decoder decoder(*model, {.block = 8});
    const std::vector<int32_t> tokens = tokens_of(40, 1);  // to the end of the context
    for (size_t i = 0; i < tokens.size(); ++i) {
      const Tensor logits = decoder.feed({{tokens[i]}});
      const std::vector<int32_t> prefix(tokens.begin(),
                                        tokens.begin() + static_cast<int64_t>(i) + 1);
      expect_logits(family, logits, 0, whole_logits(*model, prefix), join_text("token ", i));
    }
    EXPECT_EQ(decoder.programs(), 1) << family.name << ": decoding traces once";
  }
}

// Blocks, single tokens and blocks again, at every cut of 23 tokens into two calls and some into three.
TEST(Decoder, AnyCutIntoCallsGivesTheSame) {
  for (const Family& family : families()) {
    const auto model = model_of(family);
    const std::vector<int32_t> tokens = tokens_of(23, 2);
    const std::vector<float> expected = whole_logits(*model, tokens);
    infer::Decoder decoder(*model, {.block = 8});
    int block_cuts = 0;
    for (int64_t cut = 0; cut < 23; ++cut) {
      decoder.restart();
      const int64_t second = std::min<int64_t>(23, cut + 1 + cut % 3);
      const auto part = [&](int64_t from, int64_t to) {
        return std::vector<int32_t>(tokens.begin() + from, tokens.begin() + to);
      };
      decoder.feed({part(0, cut)});
      Tensor logits = decoder.feed({part(cut, second)});
      if (second < 23) logits = decoder.feed({part(second, 23)});
      const bool only_blocks = cut % 8 != 1 && (second - cut) % 8 != 1 && (23 - second) % 8 != 1;
      block_cuts += only_blocks;
      expect_logits(family, logits, 0, expected, join_text("cut at ", cut, " and ", second),
                    only_blocks);
    }
    EXPECT_GT(block_cuts, 8);
    EXPECT_EQ(decoder.programs(), 2) << family.name << ": one for blocks, one for single tokens";
  }
}

TEST(Decoder, RowsOfDifferentLengthsDoNotMeet) {
  for (const Family& family : families()) {
    const auto model = model_of(family);
    infer::Decoder decoder(*model, {.batch = 3, .block = 8});
    infer::Decoder::Rows rows{tokens_of(3, 3), tokens_of(30, 4), tokens_of(9, 5)};
    Tensor logits = decoder.feed(rows);
    for (int64_t step = 0; step < 4; ++step) {
      for (size_t row = 0; row < rows.size(); ++row)
        expect_logits(family, logits, static_cast<int64_t>(row), whole_logits(*model, rows[row]),
                      join_text("row ", row, ", step ", step));
      infer::Decoder::Rows next;
      for (size_t row = 0; row < rows.size(); ++row) {
        next.push_back(tokens_of(row == 1 ? 1 : 1 + step % 2, static_cast<uint32_t>(10 + step)));
        rows[row].insert(rows[row].end(), next[row].begin(), next[row].end());
      }
      logits = decoder.feed(next);
    }
  }
}

// A row without tokens keeps its place and has no logits.
TEST(Decoder, RowsMayPause) {
  const Family family = families()[1];
  const auto model = model_of(family);
  infer::Decoder decoder(*model, {.batch = 2, .block = 8});
  const std::vector<int32_t> tokens = tokens_of(12, 6);
  decoder.feed({{tokens.begin(), tokens.end() - 1}, tokens});
  decoder.feed({{}, tokens_of(5, 7)});
  EXPECT_EQ(decoder.length(0), 11);
  EXPECT_EQ(decoder.length(1), 17);
  const Tensor logits = decoder.feed({{tokens.back()}, {}});
  expect_logits(family, logits, 0, whole_logits(*model, tokens), "after a pause");
  for (float logit : logits[1].to_vector<float>()) EXPECT_EQ(logit, 0);
}

// The program reads the parameters where they are.
TEST(Decoder, SeesParametersChange) {
  const Family family = families()[0];
  const auto model = model_of(family);
  infer::Decoder decoder(*model);
  const std::vector<int32_t> tokens = tokens_of(7, 8);
  const std::vector<float> before = decoder.feed({tokens}).to_vector<float>();
  for (const Tensor& parameter : model->parameters()) {
    NoGrad writing;
    parameter.fill(0.01);
  }
  decoder.restart();
  const Tensor after = decoder.feed({tokens});
  EXPECT_NE(after.to_vector<float>(), before);
  expect_logits(family, after, 0, whole_logits(*model, tokens), "after a change");
  EXPECT_EQ(decoder.programs(), 1);
}

// Without a cache the whole sequence is run: slower, the same logits, and said by uses_cache.
class WithoutCache : public Gpt2 {
 public:
  using Gpt2::Gpt2;
  bool supports_cache() const override { return false; }
};

TEST(Decoder, ModelsWithoutACacheRunTheWholeSequence) {
  const Family family = families()[0];
  Random random(1);
  WithoutCache model(family.config.get<Gpt2Config>(), random);
  for (const NamedTensor& parameter : model.named_parameters()) fill_by_name(parameter);
  infer::Decoder decoder(model, {.batch = 2, .block = 8});
  EXPECT_FALSE(decoder.uses_cache());
  infer::Decoder::Rows rows{tokens_of(5, 9), tokens_of(11, 10)};
  decoder.feed(rows);
  const Tensor logits = decoder.feed({{4}, {2}});
  rows[0].push_back(4);
  rows[1].push_back(2);
  for (size_t row = 0; row < rows.size(); ++row)
    expect_logits(family, logits, static_cast<int64_t>(row), whole_logits(model, rows[row]), "");
  EXPECT_EQ(decoder.length(1), 12);
}

TEST(Decoder, SaysWhatDoesNotFit) {
  const auto model = model_of(families()[0]);
  infer::Decoder decoder(*model);
  EXPECT_THAT(error_of([&] { decoder.feed({tokens_of(41, 1)}); }),
              HasSubstr("41 tokens are longer than the context of 40"));
  EXPECT_THAT(error_of([&] { decoder.feed({{53}}); }), HasSubstr("outside the vocabulary of 53"));
  EXPECT_THAT(error_of([&] { decoder.feed({{1}, {2}}); }), HasSubstr("2 rows of tokens"));
  EXPECT_EQ(decoder.length(0), 0) << "nothing was fed";
}

// Keys and values of all layers: layers * 2 * batch * kv_heads * (context + block) * head_dim * 4 bytes.
TEST(Decoder, TheCacheHasTheSizeOfItsFormula) {
  const auto llama = model_of(families()[1]), latent = model_of(families()[5]);
  EXPECT_EQ(infer::Decoder(*llama, {.batch = 3, .block = 8}).cache_bytes().value(),
            2 * 2 * 3 * 2 * 48 * 6 * 4);
  EXPECT_EQ(infer::Decoder(*latent, {.batch = 3, .block = 8}).cache_bytes().value(),
            2 * 3 * 48 * (12 + 4) * 4);
}

}  // namespace
}  // namespace brrr
