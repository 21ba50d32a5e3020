// The embedded stories: varied, consistent, and judged by their own grammar.
#include "brrr/data/stories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "support/sanitized.h"

namespace brrr {
namespace {

using testing::HasSubstr;

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (char c : text + " ") {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

// A story of the default corpus that has this in it.
std::string story_with(std::string_view part) {
  for (int64_t i = 0; i < 1000; ++i) {
    std::string text = story(i);
    if (text.find(part) != text.npos) return text;
  }
  ADD_FAILURE() << "no story has \"" << part << "\"";
  return "";
}

std::string replace_once(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.rfind(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Stories, AreAFunctionOfSeedSplitAndIndex) {
  EXPECT_EQ(story(7, {.seed = 3}), story(7, {.seed = 3}));
  EXPECT_NE(story(7, {.seed = 3}), story(7, {.seed = 4}));
  EXPECT_NE(story(7, {.seed = 3}), story(8, {.seed = 3}));
  // The corpus is part of every published number: it may not change unnoticed.
  EXPECT_EQ(
      story(0),
      "Lily was a brave cat. She loved to draw with her friend Nick. One cold day Lily and Nick "
      "went to the market. Lily had a red bell at the market, but the bell flew over the wall. "
      "\"Oh no, my "
      "bell!\" cried Lily. Lily could not reach it. Nick came with a net and got the bell back. "
      "\"Thank you, Nick!\" said Lily. That night Lily dreamed of the market.");
}

TEST(Stories, ParseByTheirOwnGrammar) {
  for (uint64_t seed : {0, 1}) {
    for (int64_t i = 0; i < 10'000; ++i) {
      const std::string text = story(i, {.seed = seed});
      const StoryVerdict verdict = parse_story(text);
      ASSERT_TRUE(verdict) << text << "\n" << verdict.position << ": " << verdict.reason;
    }
  }
  EXPECT_TRUE(parse_story("\n " + story(0) + "\n"))
      << "white space around it is no part of a story";
}

TEST(Stories, AreShortSimpleAscii) {
  std::set<std::string> vocabulary;
  size_t shortest = 1000, longest = 0;
  for (int64_t i = 0; i < 5'000; ++i) {
    const std::string text = story(i);
    for (char c : text) ASSERT_TRUE(c >= ' ' && c <= '~') << text;
    const auto words = words_of(text);
    vocabulary.insert(words.begin(), words.end());
    shortest = std::min(shortest, words.size());
    longest = std::max(longest, words.size());
  }
  EXPECT_GE(shortest, 60u);
  EXPECT_LE(longest, 90u);
  EXPECT_GE(vocabulary.size(), 150u);
  EXPECT_LE(vocabulary.size(), 220u);
}

TEST(Stories, OverAMillionAreDistinct) {
  constexpr auto kStories = static_cast<size_t>(tenth_if_sanitized(1'050'000));
  std::vector<uint64_t> hashes;  // of 64 bits: two different texts share one with probability 3e-8
  hashes.reserve(kStories);
  for (size_t i = 0; i < kStories; ++i)
    hashes.push_back(std::hash<std::string>()(story(static_cast<int64_t>(i))));
  std::ranges::sort(hashes);
  const auto repeated = std::ranges::unique(hashes);
  EXPECT_LE(repeated.size(), 10u) << "repeated among " << kStories;
  EXPECT_GT(hashes.size() - repeated.size(), kStories / 105 * 100);
}

TEST(Stories, AreSplitByText) {
  std::set<std::string> train;
  for (int64_t i = 0; i < 3'000; ++i) train.insert(story(i));
  for (int64_t i = 0; i < 1'000; ++i) {
    const std::string text = story(i, {.split = StorySplit::validation});
    EXPECT_EQ(split_of_story(text), StorySplit::validation);
    EXPECT_TRUE(parse_story(text));
    EXPECT_FALSE(train.contains(text));
  }
  for (const std::string& text : train) EXPECT_EQ(split_of_story(text), StorySplit::train);
}

TEST(Stories, AllPlotsComeAboutEquallyOften) {
  const std::vector<std::string> marks = {"was gone", "could not reach", "broke",
                                          "heard a",  " make ",          "had none"};
  std::map<std::string, int> counts;
  for (int64_t i = 0; i < 6'000; ++i) {
    const std::string text = story(i);
    for (const std::string& mark : marks) counts[mark] += text.find(mark) != text.npos ? 1 : 0;
  }
  for (const std::string& mark : marks) {  // 1000 expected, of standard deviation 29
    EXPECT_GT(counts[mark], 850) << mark;
    EXPECT_LT(counts[mark], 1150) << mark;
  }
}

TEST(Stories, SumsAreRight) {
  const std::map<std::string, int> numbers = {{"two", 2}, {"three", 3}, {"four", 4}, {"five", 5},
                                              {"six", 6}, {"seven", 7}, {"eight", 8}};
  const auto number = [&](std::string word) {
    word[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(word[0])));
    return numbers.at(word);
  };
  const std::regex make("\"(\\w+) and (\\w+) make (\\w+),\"");
  const std::regex is("\"(\\w+) is (\\w+) and (\\w+),\"");
  std::set<int> made, parted;
  for (int64_t i = 0; i < 2'000; ++i) {
    const std::string text = story(i);
    std::smatch found;
    if (std::regex_search(text, found, make)) {
      EXPECT_EQ(number(found[1]) + number(found[2]), number(found[3])) << text;
      made.insert(number(found[3]));
    } else if (std::regex_search(text, found, is)) {
      EXPECT_EQ(number(found[1]), number(found[2]) + number(found[3])) << text;
      parted.insert(number(found[1]));
    }
  }
  EXPECT_THAT(made, testing::ElementsAre(4, 5, 6, 7, 8));
  EXPECT_THAT(parted, testing::ElementsAre(4, 5, 6, 7, 8));
}

TEST(StoryParser, WantsTheSameNameThroughout) {
  const std::string text = story(0);  // of Lily and Nick
  const StoryVerdict verdict = parse_story(replace_once(text, "Lily", "Nora"));
  EXPECT_FALSE(verdict);
  EXPECT_EQ(verdict.position, text.rfind("Lily"));
  EXPECT_THAT(verdict.reason, HasSubstr("\"Lily\" (the hero)"));
  EXPECT_THAT(verdict.reason, HasSubstr("found \"Nora dreamed"));
}

TEST(StoryParser, WantsTheRightPronoun) {
  const std::string text = story(0);
  EXPECT_FALSE(parse_story(replace_once(text, "She loved", "He loved")));
  EXPECT_FALSE(parse_story(replace_once(text, "with her friend", "with his friend")));
}

TEST(StoryParser, WantsCountsThatAddUp) {
  const std::string sum = story_with("\"Two and three make five,\"");
  EXPECT_TRUE(parse_story(sum));
  const StoryVerdict verdict = parse_story(replace_once(sum, "make five", "make six"));
  EXPECT_FALSE(verdict);
  EXPECT_THAT(verdict.reason, HasSubstr("\"five\" (the total)"));

  const std::string parts = story_with("\"Five is two and three,\"");
  const StoryVerdict shared = parse_story(replace_once(parts, "and kept three", "and kept four"));
  EXPECT_FALSE(shared);
  EXPECT_THAT(shared.reason, HasSubstr("\"three\" (the more)"));
}

TEST(StoryParser, WantsTheSameThingAndPlace) {
  const std::string text = story(0);
  EXPECT_FALSE(parse_story(replace_once(text, "of the market", "of the lake")));
  EXPECT_FALSE(parse_story(replace_once(text, "the bell back", "the drum back")));
  const std::string found = story_with("found the kite");
  EXPECT_TRUE(parse_story(found));
  EXPECT_FALSE(parse_story(replace_once(found, "found the kite", "found the hat")));
  const std::string nuts = story_with("looked for nuts");
  EXPECT_FALSE(parse_story(replace_once(nuts, "nuts", "eggs")));
}

TEST(StoryParser, RefusesTheHeroAsFriend) {
  std::string text = story(0);
  for (size_t at = text.find("Nick"); at != text.npos; at = text.find("Nick"))
    text.replace(at, 4, "Lily");
  EXPECT_FALSE(parse_story(text));
}

TEST(StoryParser, SaysWhereAndWhy) {
  const std::string text = story(0);
  EXPECT_THAT(parse_story("").reason, HasSubstr("found the end"));
  const StoryVerdict cut = parse_story(text.substr(0, text.size() / 2));
  EXPECT_FALSE(cut);
  EXPECT_GT(cut.position, text.size() / 2 - 30);
  const StoryVerdict more = parse_story(text + " And then?");
  EXPECT_EQ(more.position, text.size());
  EXPECT_THAT(more.reason, HasSubstr("expected the end"));
  EXPECT_FALSE(parse_story(replace_once(text, "Nick came", "Nick cane")));
}

// Whatever word is put in the place of another, the result is a story of its own or is refused; here
// by the words of another story, where most are refused.
TEST(StoryParser, MutatedStoriesMostlyDoNotParse) {
  int refused = 0, tried = 0;
  for (int64_t i = 0; i < 200; ++i) {
    std::vector<std::string> words, others;
    std::istringstream a(story(i)), b(story(i + 1000));
    for (std::string word; a >> word;) words.push_back(word);
    for (std::string word; b >> word;) others.push_back(word);
    for (size_t k = 0; k < std::min(words.size(), others.size()); k += 3) {
      if (words[k] == others[k]) continue;
      std::string text;
      for (size_t j = 0; j < words.size(); ++j)
        text += (j > 0 ? " " : "") + (j == k ? others[k] : words[j]);
      ++tried;
      refused += parse_story(text) ? 0 : 1;
    }
  }
  EXPECT_GT(refused, tried * 95 / 100) << "of " << tried;
}

}  // namespace
}  // namespace brrr
