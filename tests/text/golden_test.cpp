// Ids exactly as Hugging Face tokenizers and tiktoken give them.
#include <gtest/gtest.h>

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

void expect_golden(const Json& golden, const std::string& name, const Tokenizer& tokenizer) {
  const Json& cases = golden["cases"];
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto text = cases[i].get<std::string>();
    const auto ids = golden[name]["case_ids"][i].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.encode(text), ids) << text;
    EXPECT_EQ(tokenizer.decode(ids), text);
  }
  for (const auto& [file, wanted] : golden[name]["files"].items()) {
    const auto path = shared_data("text/" + file + ".txt");
    if (!path) continue;
    const std::string text = read_file(*path);
    const std::vector<int32_t> ids = tokenizer.encode(text);
    EXPECT_EQ(ids.size(), wanted["n_tokens"].get<size_t>()) << file;
    EXPECT_EQ(sha256_hex(as_u32(ids)), wanted["sha256_u32le"].get<std::string>()) << file;
    EXPECT_EQ(tokenizer.decode(ids), text) << file;
    std::vector<int32_t> streamed;
    encode_file(tokenizer, *path, Specials::as_text,
                [&](auto part) { streamed.insert(streamed.end(), part.begin(), part.end()); },
                {.block_bytes = 10'007});
    EXPECT_EQ(streamed, ids) << file;
  }
}

class Golden : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Golden, IdsAreThoseOfTheOriginal) {
  const auto [name, file] = GetParam();
  const auto golden = shared_data("ref/tokenizer_golden.json");
  const auto path = shared_data(std::string("tokenizers/") + file);
  if (!golden || !path) GTEST_SKIP() << "no " << file;
  expect_golden(Json::parse(read_file(*golden)), name, *load_tokenizer(*path));
}

INSTANTIATE_TEST_SUITE_P(
    Files, Golden,
    testing::Values(std::pair{"gpt2", "gpt2/tokenizer.json"}, std::pair{"gpt2", "gpt2/vocab.json"},
                    std::pair{"gpt2", "gpt2/vocab.bpe"}, std::pair{"gpt2", "gpt2"},
                    std::pair{"cl100k_base", "tiktoken/cl100k_base.tiktoken"}));

// Written in another form and read again, the ids stay.
TEST(Golden, IdsSurviveEveryForm) {
  const auto golden_path = shared_data("ref/tokenizer_golden.json");
  const auto gpt2 = shared_data("tokenizers/gpt2"), tiktoken = shared_data("tokenizers/tiktoken");
  if (!golden_path || !gpt2 || !tiktoken) GTEST_SKIP() << "no tokenizers";
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

TEST(Golden, TheSameTokenizerHasTheSameHashInEveryFile) {
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
