// Words: the scanners say what PCRE2 says, and text may come in parts.
#include "brrr/text/splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/text/char_class.h"
#include "brrr/text/for_each_word.h"
#include "brrr/text/regex.h"
#include "support/error_of.h"
#include "text/random_text.h"

namespace brrr::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> words(const Splitter& splitter, std::string_view text) {
  std::vector<std::string> list;
  for_each_word(splitter, text, TextEnd::here, [&](auto word) { list.emplace_back(word); });
  return list;
}

std::vector<std::string> known_patterns() {
  return {std::string(kGpt2Pattern), std::string(kCl100kPattern)};
}

TEST(Splitter, CutsAsGpt2Does) {
  const auto gpt2 = make_splitter(std::string(kGpt2Pattern));
  EXPECT_THAT(words(*gpt2, "Hello world's  end!\n\nIt'S 2024."),
              ElementsAre("Hello", " world", "'s", " ", " end", "!", "\n", "\n", "It", "'", "S",
                          " 2024", "."));
}

TEST(Splitter, CutsAsCl100kDoes) {
  const auto cl100k = make_splitter(std::string(kCl100kPattern));
  EXPECT_THAT(
      words(*cl100k, "Hello\tworld'S  end!\n\nIn 12345."),
      ElementsAre("Hello", "\tworld", "'S", " ", " end", "!\n\n", "In", " ", "123", "45", "."));
}

TEST(Splitter, ScannersAgreeWithPcre2OnUnicode) {
  for (const std::string& pattern : known_patterns()) {
    const auto scanner = make_splitter(pattern), oracle = make_regex_splitter(pattern);
    RandomText random(1);
    for (int i = 0; i < 3000; ++i) {
      const std::string text = random.mixed(1 + random.below(30));
      ASSERT_EQ(scanner->split(text, TextEnd::here), oracle->split(text, TextEnd::here)) << text;
    }
  }
}

TEST(Splitter, ScannersAgreeWithPcre2OnBrokenText) {
  for (const std::string& pattern : known_patterns()) {
    const auto scanner = make_splitter(pattern), oracle = make_regex_splitter(pattern);
    RandomText random(2);
    for (int i = 0; i < 3000; ++i) {
      const std::string text =
          i % 2 == 0 ? random.broken(1 + random.below(30)) : random.bytes(1 + random.below(40));
      ASSERT_EQ(scanner->split(text, TextEnd::here), oracle->split(text, TextEnd::here))
          << testing::PrintToString(text);
    }
  }
}

TEST(Splitter, ClassesOfAllCharactersAreThoseOfPcre2) {
  const Regex regex(R"((\p{L})|(\p{N})|(\s)|([\s\S]))");
  Regex::Search search(regex);
  constexpr CharClass by_group[] = {CharClass::letter, CharClass::number, CharClass::space,
                                    CharClass::other};
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    const Regex::Match match = search.find(encode_utf8(code), 0, false);
    const CharClass wanted =
        code == '\r' || code == '\n' ? CharClass::newline : by_group[match.group - 1];
    ASSERT_EQ(class_of(code), wanted) << std::hex << code;
    if (code < 0x80) {
      ASSERT_EQ(kByteClass[code], wanted) << code;
    }
  }
}

// What was decided with more to come must be what the whole text says.
TEST(Splitter, WordsOfAPartAreWordsOfTheWhole) {
  auto patterns = known_patterns();
  patterns.emplace_back(R"(\p{Lu}\p{Ll}*|\d+(?= )|\s+$|[a-z]{1,4})");
  for (const std::string& pattern : patterns) {
    for (const auto& splitter : {make_splitter(pattern), make_regex_splitter(pattern)}) {
      RandomText random(3);
      for (int i = 0; i < 300; ++i) {
        const std::string text = random.broken(1 + random.below(12));
        const auto whole = splitter->split(text, TextEnd::here);
        for (size_t size = 0; size <= text.size(); ++size) {
          const auto part = splitter->split(std::string_view(text).substr(0, size), TextEnd::later);
          ASSERT_LE(part.size(), whole.size());
          ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin()))
              << testing::PrintToString(text) << " at " << size;
        }
      }
    }
  }
}

TEST(Splitter, CutsLeaveTheWordsAsTheyAre) {
  for (const std::string& pattern : known_patterns()) {
    const auto splitter = make_splitter(pattern);
    RandomText random(4);
    size_t cuts = 0;
    for (int i = 0; i < 3000; ++i) {
      const std::string text = random.broken(2 + random.below(20));
      const size_t cut = splitter->find_cut(text, 1 + random.below(text.size()));
      if (cut >= text.size()) continue;
      ++cuts;
      auto parts = words(*splitter, text.substr(0, cut));
      for (const std::string& word : words(*splitter, text.substr(cut))) parts.push_back(word);
      ASSERT_EQ(parts, words(*splitter, text)) << testing::PrintToString(text) << " at " << cut;
    }
    EXPECT_GT(cuts, 500u) << "too few to say anything";
  }
}

TEST(Splitter, AWordMayBeLongerThanAWindow) {
  const auto splitter = make_splitter(std::string(kGpt2Pattern));
  const std::string letters(200'000, 'x');
  EXPECT_THAT(words(*splitter, letters + " " + letters), ElementsAre(letters, " " + letters));
}

TEST(Splitter, WhatAPatternDoesNotMatchIsAWord) {
  const auto splitter = make_splitter("[a-z]+");
  EXPECT_THAT(words(*splitter, "12ab--c\xFF!"), ElementsAre("12", "ab", "--", "c", "\xFF", "!"));
}

TEST(Splitter, RefusesPatternsThatItCannotKeep) {
  EXPECT_THAT(error_of([] { make_splitter("(a"); }), HasSubstr("not understood at byte 2"));
  EXPECT_THAT(error_of([] { make_splitter("(?<=a)b"); }), HasSubstr("looks behind"));
  EXPECT_THAT(error_of([] { make_splitter("\\bword"); }), HasSubstr("looks behind"));
  const auto endless = make_splitter("(x+x+)+[yz]");
  EXPECT_THAT(error_of([&] { endless->split(std::string(64, 'x'), TextEnd::here); }),
              HasSubstr("nested repetitions"));
}

}  // namespace
}  // namespace brrr::text
