// Files: what is written is read, and what is damaged or false is refused by name.
#include "brrr/text/tokenizer_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "brrr/text/train_bpe.h"
#include "support/error_of.h"
#include "support/temp_folder.h"
#include "text/random_text.h"

namespace brrr::text {
namespace {

using testing::HasSubstr;

TokenizerDefinition small_bpe(std::string_view pattern = kGpt2Pattern) {
  const std::vector<std::string_view> documents{
      "the cat and the hat and the bat sat on the mat; the rat ate that fat gnat's hat \xFF\xFE"};
  return train_bpe(documents, {.vocab_size = 300, .pattern = std::string(pattern)});
}

class Folder {
 public:
  std::string operator/(const std::string& name) const { return path_ + name; }
  const std::string& path() const { return path_; }

 private:
  TempFolder temporary_;
  std::string path_ = temporary_.path().string() + "/";
};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t place = text.find(what);
  EXPECT_NE(place, std::string::npos) << what;
  return text.replace(place, what.size(), by);
}

TEST(TokenizerFile, EveryFormGivesTheTokenizerBack) {
  const Folder folder;
  const auto tokenizer = make_tokenizer(small_bpe());
  for (const char* name : {"own.json", "tokenizer.json", "gpt2/", "tokenizer.brrr.json"}) {
    save_tokenizer(*tokenizer, folder / name);
    const auto again = load_tokenizer(folder / name);
    EXPECT_EQ(again->definition(), tokenizer->definition()) << name;
    EXPECT_EQ(again->hash(), tokenizer->hash()) << name;
  }
  save_tokenizer(*tokenizer, folder / "ranks.tiktoken");
  const auto ranks = load_tokenizer(folder / "ranks.tiktoken");
  RandomText random(12);
  for (int i = 0; i < 300; ++i) {
    const std::string text = random.broken(10) + " the cat that sat";
    ASSERT_EQ(ranks->encode(text), tokenizer->encode(text));
  }
  // Ranks become a list again.
  save_tokenizer(*ranks, folder / "tokenizer.json");
  EXPECT_EQ(load_tokenizer(folder / "tokenizer.json")->definition().merges,
            tokenizer->definition().merges);
}

TEST(TokenizerFile, OtherPatternsTravelToo) {
  const Folder folder;
  for (std::string_view pattern : {kCl100kPattern, std::string_view(R"(\w+|\W+)")}) {
    const auto tokenizer = make_tokenizer(small_bpe(pattern));
    for (const char* name : {"own.json", "tokenizer.json", "ranks.tiktoken"}) {
      save_tokenizer(*tokenizer, folder / name);
      EXPECT_EQ(load_tokenizer(folder / name)->definition().pattern, pattern) << name;
    }
    EXPECT_THAT(error_of([&] { save_tokenizer(*tokenizer, folder / "gpt2/"); }),
                HasSubstr("mean GPT-2's pattern"));
  }
}

TEST(TokenizerFile, BytesAndCharactersHaveOurForm) {
  const Folder folder;
  const std::vector<std::string> specials{"<|endoftext|>"};
  for (const TokenizerDefinition& definition :
       {define_byte_tokenizer(specials), define_char_tokenizer("añ字\xFF")}) {
    const auto tokenizer = make_tokenizer(definition);
    save_tokenizer(*tokenizer, folder / std::string(kTokenizerFileName));
    EXPECT_EQ(load_tokenizer(folder.path())->definition(), definition);
    EXPECT_THAT(error_of([&] { save_tokenizer(*tokenizer, folder / "tokenizer.json"); }),
                HasSubstr("does not fit tokenizer.json"));
  }
}

TEST(TokenizerFile, AFolderHasTheTokenizerThatIsInIt) {
  const Folder folder;
  EXPECT_THAT(error_of([&] { load_tokenizer(folder.path()); }), HasSubstr("has no tokenizer"));
  EXPECT_THAT(error_of([&] { load_tokenizer(folder / "absent.json"); }),
              HasSubstr("there is no tokenizer at"));
  save_tokenizer(*make_tokenizer(small_bpe()), folder.path());
  EXPECT_EQ(load_tokenizer(folder.path())->definition(), small_bpe());
  EXPECT_EQ(load_tokenizer(folder / "merges.txt")->definition(), small_bpe());
}

TEST(TokenizerFile, EveryFlippedBitOfOurFormIsRefused) {
  const TokenizerDefinition definition = define_char_tokenizer("ab", UnknownCharacters::refuse);
  const std::string whole = to_brrr_json(definition);
  EXPECT_EQ(parse_tokenizer_json(whole, "f"), definition);
  for (size_t place = 0; place < whole.size(); ++place) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[place] = static_cast<char>(damaged[place] ^ 1 << bit);
      // Blanks between values carry nothing; everything else does.
      const std::string message = error_of([&] {
        if (parse_tokenizer_json(damaged, "f") == definition) fail("the same: \"f\"");
      });
      EXPECT_THAT(message, HasSubstr("\"f\"")) << place << " " << bit;
    }
  }
}

TEST(TokenizerFile, EveryTruncationIsRefused) {
  const std::string own = to_brrr_json(small_bpe()),
                    hugging_face = to_huggingface_json(small_bpe());
  for (const std::string& whole : {own, hugging_face}) {
    for (size_t size = 0; size + 3 < whole.size(); size += 97)
      EXPECT_THAT(error_of([&] { parse_tokenizer_json(whole.substr(0, size), "file.json"); }),
                  HasSubstr("\"file.json\" is not JSON"));
  }
}

TEST(TokenizerFile, RefusesWhatHuggingFaceFilesMaySayAndBrrrCannotKeep) {
  const std::string good = to_huggingface_json(small_bpe());
  const auto refusal = [&](const std::string& what, const std::string& by) {
    return error_of([&] { parse_tokenizer_json(replaced(good, what, by), "t.json"); });
  };
  EXPECT_THAT(refusal("\"normalizer\": null", "\"normalizer\": {\"type\": \"NFC\"}"),
              HasSubstr("changes the text before encoding (normalizer \"NFC\")"));
  EXPECT_THAT(refusal("\"BPE\"", "\"Unigram\""), HasSubstr("type \"Unigram\""));
  EXPECT_THAT(refusal("\"byte_fallback\": false", "\"byte_fallback\": true"),
              HasSubstr("byte_fallback"));
  EXPECT_THAT(refusal("\"add_prefix_space\":false", "\"add_prefix_space\":true"),
              HasSubstr("add_prefix_space"));
  EXPECT_THAT(refusal("\"lstrip\":false", "\"lstrip\":true"), HasSubstr("lstrip"));
  EXPECT_THAT(refusal("\"!\": 0", "\"!\": 1"), HasSubstr("the id 1 belongs to two tokens"));
  EXPECT_THAT(refusal("\"!\": 0", "\"!\": -1"), HasSubstr("the id -1 is not between"));
  EXPECT_THAT(refusal("\"!\": 0", "\"!\": 16000000"), HasSubstr("far apart"));
  EXPECT_THAT(refusal("\"!\": 0", "\"!\": 18446744073709551615"), HasSubstr("is not between"));
  EXPECT_THAT(refusal("\"!\": 0", "\"!\": 0.5"), HasSubstr("not an integer"));
  EXPECT_THAT(refusal("\"!\": 0", "\"字\": 0"), HasSubstr("stands for no byte"));
}

TEST(TokenizerFile, MessagesNameTheFileAndTheRule) {
  const Folder folder;
  std::ofstream(folder / "tokenizer.json")
      << replaced(to_huggingface_json(small_bpe()), "\"!\": 0,", "");
  EXPECT_THAT(error_of([&] { load_tokenizer(folder / "tokenizer.json"); }),
              testing::AllOf(HasSubstr("tokenizer.json\": the byte 33 has no token"),
                             HasSubstr("needs one for each of the 256")));
  std::ofstream(folder / "a.tiktoken") << "IQ== 0\n";
  EXPECT_THAT(error_of([&] { load_tokenizer(folder / "a.tiktoken"); }),
              HasSubstr("give a pattern"));
  EXPECT_THAT(error_of([&] { load_tokenizer(folder / "a.tiktoken", {.pattern = "gpt2"}); }),
              HasSubstr("has no token"));
  std::ofstream(folder / "a.tiktoken") << "IQ= 0\n";
  EXPECT_THAT(error_of([&] { load_tokenizer(folder / "a.tiktoken", {.pattern = "gpt2"}); }),
              HasSubstr("not a token in base64"));
  EXPECT_THAT(error_of([&] {
                parse_vocab_files({to_vocab_files(small_bpe()).vocab_json, "t h e\n"}, "", "v");
              }),
              HasSubstr("not two tokens with a space between"));
  EXPECT_THAT(error_of([&] {
                parse_vocab_files({to_vocab_files(small_bpe()).vocab_json, "qq qq\n"}, "", "v");
              }),
              HasSubstr("not in the vocabulary"));
}

TEST(TokenizerFile, ANewerVersionIsRefusedByNumber) {
  const std::string file = replaced(to_brrr_json(small_bpe()), "\"version\": 1", "\"version\": 2");
  EXPECT_THAT(error_of([&] { parse_tokenizer_json(file, "f"); }), HasSubstr("version 2"));
}

TEST(TokenizerFile, ASaveThatFailsLeavesTheOldFile) {
  const Folder folder;
  const auto tokenizer = make_tokenizer(small_bpe());
  EXPECT_THAT(error_of([&] { save_tokenizer(*tokenizer, folder / "no/such/folder.json"); }),
              HasSubstr("cannot be written: No such file"));
  save_tokenizer(*tokenizer, folder / "own.json");
  EXPECT_FALSE(std::filesystem::exists(folder / "own.json.new"));
}

// tests/fuzz/tokenizer_file_fuzz.cpp says the same of many more inputs.
TEST(TokenizerFile, EitherParsesOrThrowsError) {
  const VocabFiles vocab = to_vocab_files(small_bpe());
  const TiktokenFiles ranks = to_tiktoken(small_bpe());
  RandomText random(13);
  const auto mutate = [&](std::string text) {
    for (size_t i = 0; i < 1 + random.below(4); ++i)
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    return text;
  };
  int made = 0;
  const auto try_it = [&](const auto& parse) {
    try {
      make_tokenizer(parse());
      ++made;
    } catch (const Error&) {
    }
  };
  for (int i = 0; i < 150; ++i) {
    try_it([&] { return parse_tokenizer_json(mutate(to_huggingface_json(small_bpe())), "f"); });
    try_it([&] {
      return parse_vocab_files({mutate(vocab.vocab_json), mutate(vocab.merges_txt)}, "", "f");
    });
    try_it([&] { return parse_tiktoken({mutate(ranks.ranks), mutate(ranks.meta_json)}, "", "f"); });
  }
  EXPECT_GT(made, 0) << "some changes are harmless";
}

}  // namespace
}  // namespace brrr::text
