// Training finds what counting everything anew at every step finds, and what Hugging Face finds.
#include "brrr/text/train_bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "brrr/base/thread_pool.h"
#include "brrr/text/byte_level.h"
#include "brrr/text/for_each_word.h"
#include "brrr/text/tokenizer.h"
#include "support/error_of.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"
#include "text/random_text.h"

namespace brrr::text {
namespace {

using testing::HasSubstr;

TokenizerDefinition train(std::string_view text, const BpeTraining& training) {
  const std::vector<std::string_view> documents{text};
  return train_bpe(documents, training);
}

// Merges by the definition: count all pairs, take the best, rewrite all words, again.
std::vector<Merge> train_slowly(std::string_view text, const BpeTraining& training) {
  std::map<std::string, int64_t> counts;
  for_each_word(*make_splitter(training.pattern), text, TextEnd::here,
                [&](auto word) { ++counts[std::string(word)]; });
  std::map<char, int32_t> ids;
  std::vector<std::string> tokens;
  for (uint8_t byte : byte_level_order()) {
    ids[static_cast<char>(byte)] = static_cast<int32_t>(tokens.size());
    tokens.emplace_back(1, static_cast<char>(byte));
  }
  std::vector<std::pair<std::vector<int32_t>, int64_t>> words;
  for (const auto& [word, count] : counts) {
    words.emplace_back(std::vector<int32_t>{}, count);
    for (char byte : word) words.back().first.push_back(ids[byte]);
  }
  std::vector<Merge> merges;
  const size_t limit = static_cast<size_t>(training.vocab_size) - training.specials.size();
  while (tokens.size() < limit) {
    std::map<std::pair<int32_t, int32_t>, int64_t> pairs;
    for (const auto& [word, count] : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) pairs[{word[i], word[i + 1]}] += count;
    }
    const auto best =
        std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;  // of equals the first, which is the smallest pair
        });
    if (best == pairs.end() || best->second < training.min_count) break;
    const auto [left, right] = best->first;
    merges.push_back({left, right});
    const std::string whole =
        tokens[static_cast<size_t>(left)] + tokens[static_cast<size_t>(right)];
    auto known = std::find(tokens.begin(), tokens.end(), whole);
    const auto merged = static_cast<int32_t>(known - tokens.begin());
    if (known == tokens.end()) tokens.push_back(whole);
    for (auto& [word, count] : words) {
      std::vector<int32_t> rewritten;
      for (size_t i = 0; i < word.size(); ++i) {
        const bool is_pair = i + 1 < word.size() && word[i] == left && word[i + 1] == right;
        rewritten.push_back(is_pair ? merged : word[i]);
        i += is_pair;
      }
      word = std::move(rewritten);
    }
  }
  return merges;
}

TEST(TrainBpe, FindsTheMergesOfTheDefinition) {
  RandomText random(8);
  for (int i = 0; i < 12; ++i) {
    // A few letters make many equal counts and many runs such as "aaaa".
    std::string text;
    const size_t letters = 2 + random.below(4);
    for (int k = 0; k < 1500; ++k)
      text += random.below(6) == 0 ? ' ' : "abcdef"[random.below(letters)];
    text += random.broken(200);
    const BpeTraining training{.vocab_size = 256 + 1 + 80, .min_count = i % 2 == 0 ? 1 : 3};
    EXPECT_EQ(train(text, training).merges, train_slowly(text, training)) << i;
  }
}

TEST(TrainBpe, FindsTheMergesOfHuggingFace) {
  const std::string folder = std::string(BRRR_SOURCE_DIR) + "/tests/fixtures/";
  std::ifstream file(folder + "bpe_training.json");
  ASSERT_TRUE(file) << "the fixture is missing";
  const auto fixtures = nlohmann::json::parse(file);  // the loop below does not keep it alive
  for (const auto& fixture : fixtures["cases"]) {
    const auto text = fixture["text"].get<std::string>();
    const auto definition =
        train(text, {.vocab_size = fixture["vocab_size"],
                     .pattern = pattern_from_name(fixture["pattern"].get<std::string>()),
                     .min_count = fixture["min_count"]});
    std::vector<std::string> merges;
    for (const auto& [left, right] : definition.merges) {
      merges.push_back(to_byte_level(definition.tokens[static_cast<size_t>(left)]) + " " +
                       to_byte_level(definition.tokens[static_cast<size_t>(right)]));
    }
    EXPECT_EQ(merges, fixture["merges"].get<std::vector<std::string>>());
  }
}

TEST(TrainBpe, AnyNumberOfThreadsFindsTheSame) {
  RandomText random(9);
  std::string text;
  while (text.size() < 1'000'000) text += random.mixed(50);
  const BpeTraining training{.vocab_size = 600};
  set_num_threads(1);
  const auto alone = train(text, training);
  for (int threads : {2, 5}) {
    set_num_threads(threads);
    EXPECT_EQ(train(text, training), alone) << threads;
  }
  set_num_threads(available_cores());
}

TEST(TrainBpe, FilesInPartsGiveWhatTheTextGives) {
  RandomText random(10);
  const TempFolder folder;
  const std::string text = random.broken(4000) + std::string(kEndOfText) + random.mixed(4000);
  const std::string path = folder.write("train.txt", text).string();
  const BpeTraining training{.vocab_size = 400};
  const std::vector<std::string> paths{path};
  for (size_t block : {100, 1000, 1 << 20})
    EXPECT_EQ(train_bpe_on_files(paths, training, {.block_bytes = block}), train(text, training));
}

TEST(TrainBpe, NoMergeReachesOverTheEndOfADocument) {
  // "xy" would be the only pair if the documents were one text.
  const std::vector<std::string_view> documents{"x", "y", "x", "y"};
  EXPECT_TRUE(train_bpe(documents, {.min_count = 1}).merges.empty());
  EXPECT_TRUE(
      train("x<|endoftext|>y<|endoftext|>x<|endoftext|>y", {.min_count = 1}).merges.empty());
  EXPECT_EQ(train("xy", {.min_count = 1}).merges.size(), 1u);
}

TEST(TrainBpe, SpecialTokensHaveTheLastIdsAndAreNotLearned) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "one<|endoftext|>two<|sep|>";
  const auto definition =
      train(text, {.vocab_size = 280, .specials = {"<|endoftext|>", "<|sep|>"}});
  const auto tokens = static_cast<int32_t>(definition.tokens.size());
  EXPECT_EQ(definition.specials,
            (std::vector<SpecialToken>{{"<|endoftext|>", tokens}, {"<|sep|>", tokens + 1}}));
  for (const std::string& token : definition.tokens)
    EXPECT_EQ(token.find("end"), std::string::npos);
  EXPECT_EQ(make_tokenizer(definition)->encode("one").size(), 1u);
}

TEST(TrainBpe, RefusesSizesThatCannotBe) {
  EXPECT_THAT(error_of([] { train("text", {.vocab_size = 256}); }),
              HasSubstr("a vocabulary of 256 ids; it must be between 257"));
  EXPECT_THAT(error_of([] { train_bpe_on_files(std::vector<std::string>{"/nowhere.txt"}); }),
              HasSubstr("\"/nowhere.txt\" cannot be opened"));
  EXPECT_EQ(make_tokenizer(train("", {}))->vocab_size(), 257) << "no text, no merges";
}

TEST(TrainBpe, LearnsALongRunWithoutWalkingItForEver) {
  const auto definition = train(std::string(3'000'000, 'a'), {.vocab_size = 270});
  EXPECT_FALSE(definition.merges.empty());
}

}  // namespace
}  // namespace brrr::text
