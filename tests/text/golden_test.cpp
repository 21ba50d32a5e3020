// Ids exactly as Hugging Face tokenizers and tiktoken give them.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "brrr/text/stream.h"
#include "brrr/text/tokenizer_file.h"
#include "support/sha256.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace brrr::text {
namespace {

using Json = nlohmann::json;

std::string as_u32(const std::vector<int32_t>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), 4 * ids.size()};
}

void expect_ids(const Tokenizer& tokenizer, const Json& texts, const Json& wanted) {
  ASSERT_EQ(texts.size(), wanted.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto text = texts[i].get<std::string>();
    const auto ids = wanted[i].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.encode(text), ids) << text;
    EXPECT_EQ(tokenizer.decode(ids), text);
  }
}

// Two small tokenizers that Hugging Face trained and wrote (tests/fixtures/make_bpe_fixtures.py), one for each pattern.
TEST(GoldenSmall, TokenizersGiveTheIdsOfHuggingFace) {
  const std::string fixtures = std::string(BRRR_SOURCE_DIR) + "/tests/fixtures/";
  const Json golden = Json::parse(read_file(fixtures + "tokenizer_ids.json"));
  const TempFolder folder;
  ASSERT_EQ(golden["cases"].size(), 2U);
  for (const Json& each : golden["cases"]) {
    const std::string path = (folder.path() / "tokenizer.json").string();
    std::ofstream(path) << each["file"].dump();
    expect_ids(*load_tokenizer(path), golden["texts"], each["ids"]);
  }
}

// What follows is held against files that are too large for the tree; support/shared_data.h says where they are looked for.
using Names = std::pair<const char*, const char*>;  // in the list of ids, and of the file
constexpr Names kTokenizers[] = {{"gpt2", "gpt2/tokenizer.json"},
                                 {"gpt2", "gpt2/vocab.json"},
                                 {"gpt2", "gpt2/vocab.bpe"},
                                 {"gpt2", "gpt2"},
                                 {"cl100k_base", "tiktoken/cl100k_base.tiktoken"}};
const std::string kGolden = "ref/tokenizer_golden.json";

class Golden : public testing::TestWithParam<Names> {};

TEST_P(Golden, IdsAreThoseOfTheOriginal) {
  const auto [name, file] = GetParam();
  const auto golden_path = shared_data(kGolden);
  if (!golden_path) GTEST_SKIP() << "no " << kGolden;
  const auto path = shared_data(std::string("tokenizers/") + file);
  if (!path) GTEST_SKIP() << "no tokenizers/" << file;
  const Json golden = Json::parse(read_file(*golden_path));
  expect_ids(*load_tokenizer(*path), golden["cases"], golden[name]["case_ids"]);
}
INSTANTIATE_TEST_SUITE_P(Files, Golden, testing::ValuesIn(kTokenizers));

class GoldenTexts : public testing::TestWithParam<std::tuple<Names, const char*>> {};

TEST_P(GoldenTexts, IdsOfAWholeTextAreThoseOfTheOriginal) {
  const auto [names, text_name] = GetParam();
  const std::string text_file = std::string("text/") + text_name + ".txt";
  const auto golden_path = shared_data(kGolden), text_path = shared_data(text_file),
             path = shared_data(std::string("tokenizers/") + names.second);
  if (!golden_path) GTEST_SKIP() << "no " << kGolden;
  if (!text_path) GTEST_SKIP() << "no " << text_file;
  if (!path) GTEST_SKIP() << "no tokenizers/" << names.second;
  const Json golden = Json::parse(read_file(*golden_path));
  const Json& wanted = golden[names.first]["files"][text_name];
  const auto tokenizer = load_tokenizer(*path);
  const std::string text = read_file(*text_path);
  const std::vector<int32_t> ids = tokenizer->encode(text);
  EXPECT_EQ(ids.size(), wanted["n_tokens"].get<size_t>());
  EXPECT_EQ(sha256_hex(as_u32(ids)), wanted["sha256_u32le"].get<std::string>());
  EXPECT_EQ(tokenizer->decode(ids), text);
  std::vector<int32_t> streamed;
  encode_file(*tokenizer, *text_path, Specials::as_text,
              [&](auto part) { streamed.insert(streamed.end(), part.begin(), part.end()); },
              {.block_bytes = 10'007});
  EXPECT_EQ(streamed, ids);
}
INSTANTIATE_TEST_SUITE_P(Files, GoldenTexts,
                         testing::Combine(testing::ValuesIn(kTokenizers),
                                          testing::Values("tinyshakespeare", "wikitext2_test")));

// Written in another form and read again, the ids stay.
TEST(GoldenForms, IdsSurviveEveryForm) {
  const auto golden_path = shared_data(kGolden);
  const auto gpt2 = shared_data("tokenizers/gpt2"), tiktoken = shared_data("tokenizers/tiktoken");
  if (!golden_path || !gpt2 || !tiktoken)
    GTEST_SKIP() << "no "
                 << (golden_path ? gpt2 ? "tokenizers/tiktoken" : "tokenizers/gpt2" : kGolden);
  const Json golden = Json::parse(read_file(*golden_path));
  const TempFolder temporary;
  const std::string folder = temporary.path().string() + "/";
  for (const auto& [name, source] :
       {std::pair{"gpt2", *gpt2}, std::pair{"cl100k_base", *tiktoken}}) {
    const auto original = load_tokenizer(source);
    for (const char* file : {"tokenizer.json", "own.json", "ranks.tiktoken"}) {
      save_tokenizer(*original, folder + file);
      const auto again = load_tokenizer(folder + file);
      EXPECT_EQ(again->end_of_text(), original->end_of_text());
      EXPECT_EQ(again->vocab_size(), original->vocab_size());
      for (size_t i = 0; i < golden["cases"].size(); ++i) {
        EXPECT_EQ(again->encode(golden["cases"][i].get<std::string>()),
                  golden[name]["case_ids"][i].get<std::vector<int32_t>>())
            << file;
      }
    }
  }
}

TEST(GoldenForms, TheSameTokenizerHasTheSameHashInEveryFile) {
  const auto gpt2 = shared_data("tokenizers/gpt2");
  if (!gpt2) GTEST_SKIP() << "no tokenizers/gpt2";
  const auto from_json = load_tokenizer(*gpt2 + "/tokenizer.json");
  const auto from_merges = load_tokenizer(*gpt2 + "/merges.txt");
  EXPECT_EQ(from_json->hash(), from_merges->hash());
  EXPECT_EQ(from_json->vocab_size(), 50257);
  EXPECT_EQ(from_json->end_of_text(), 50256);
  EXPECT_EQ(from_json->description(),
            "byte-level BPE, 50257 ids, 50000 merges, GPT-2's pattern, 1 special token");
}

}  // namespace
}  // namespace brrr::text
