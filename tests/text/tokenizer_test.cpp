// What every tokenizer promises: any bytes come back, parts add up, special tokens only where asked for.
#include "brrr/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "brrr/base/thread_pool.h"
#include "brrr/text/byte_level.h"
#include "brrr/text/stream.h"
#include "brrr/text/train_bpe.h"
#include "support/error_of.h"
#include "text/random_text.h"

namespace brrr::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kStory =
    "Once upon a time there was a cat. The cat had a hat, and the hat had a cat's name in it.\n"
    "\"It's mine,\" said the cat, 1234 times over. Été, naïve, кот, кошка, 字.\n\n";

std::unique_ptr<Tokenizer> small_bpe(std::string_view pattern = kGpt2Pattern) {
  const std::vector<std::string_view> texts{kStory};
  return make_tokenizer(train_bpe(texts, {.vocab_size = 330, .pattern = std::string(pattern)}));
}

struct Named {
  std::string name;
  std::unique_ptr<Tokenizer> tokenizer;
};
std::vector<Named> all_kinds() {
  const std::vector<std::string> specials{std::string(kEndOfText)};
  std::vector<Named> kinds;
  kinds.push_back({"byte", make_tokenizer(define_byte_tokenizer(specials))});
  kinds.push_back({"char", make_tokenizer(define_char_tokenizer(kStory, UnknownCharacters::as_bytes,
                                                                specials))});
  kinds.push_back({"gpt2", small_bpe()});
  kinds.push_back({"cl100k", small_bpe(kCl100kPattern)});
  kinds.push_back({"regex", small_bpe(R"(\s?\w+|\s+|[^\s\w]+)")});
  return kinds;
}

TEST(Tokenizer, AnyBytesComeBack) {
  for (const auto& [name, tokenizer] : all_kinds()) {
    RandomText random(5);
    for (int i = 0; i < 500; ++i) {
      const std::string text = i % 3 == 0   ? random.bytes(random.below(100))
                               : i % 3 == 1 ? random.broken(random.below(40))
                                            : random.mixed(random.below(40)) + kStory;
      ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), text) << name;
      ASSERT_EQ(tokenizer->decode(tokenizer->encode(text, Specials::as_tokens)), text) << name;
    }
  }
}

std::vector<int32_t> encode_in_parts(const Tokenizer& tokenizer, const std::string& text,
                                     size_t block_bytes) {
  std::istringstream in(text);
  std::vector<int32_t> ids;
  encode_stream(tokenizer, in, "text", Specials::as_tokens,
                [&](auto part) { ids.insert(ids.end(), part.begin(), part.end()); },
                {.block_bytes = block_bytes});
  return ids;
}

TEST(Tokenizer, PartsHaveTheIdsOfTheWhole) {
  for (const auto& [name, tokenizer] : all_kinds()) {
    RandomText random(6);
    for (int i = 0; i < 60; ++i) {
      const std::string text = random.broken(random.below(30)) + std::string(kEndOfText) +
                               random.mixed(random.below(30)) + "<|endof";
      const auto whole = tokenizer->encode(text, Specials::as_tokens);
      for (size_t block : {1, 2, 3, 7, 20, 64})
        ASSERT_EQ(encode_in_parts(*tokenizer, text, block), whole) << name << " by " << block;
    }
  }
}

TEST(Tokenizer, ManyThreadsGiveTheIdsOfOne) {
  RandomText random(7);
  std::string text;
  while (text.size() < 1'500'000) text += random.broken(20) + kStory;
  for (const auto& [name, tokenizer] : all_kinds()) {
    set_num_threads(1);
    const auto alone = tokenizer->encode(text);
    set_num_threads(4);
    EXPECT_EQ(tokenizer->encode(text), alone) << name;
  }
  set_num_threads(available_cores());
}

TEST(Tokenizer, ThreadsMayShareOne) {
  const auto tokenizer = small_bpe();
  const auto wanted = tokenizer->encode(kStory);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) wrong += tokenizer->encode(kStory) != wanted;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// However long the text, what is in memory at a time is a block and the beginning of a word.
TEST(Tokenizer, ReadsLongTextInBoundedMemory) {
  const auto tokenizer = small_bpe();
  std::string text;
  while (text.size() < 4'000'000) text += kStory;
  std::istringstream in(text);
  size_t largest = 0, bytes = 0;
  read_in_parts(in, "text",
                [&](std::string_view part, TextEnd end) {
                  largest = std::max(largest, part.size());
                  const size_t taken = tokenizer->encode_part(part, end).bytes;
                  bytes += taken;
                  return taken;
                },
                {.block_bytes = 50'000});
  EXPECT_EQ(bytes, text.size());
  EXPECT_LT(largest, 50'100u);
}

TEST(Tokenizer, SpecialTokensAreMadeOnlyWhereAskedFor) {
  const auto tokenizer = small_bpe();
  const int32_t end = *tokenizer->end_of_text();
  EXPECT_EQ(end, tokenizer->vocab_size() - 1);
  const std::string text = "a<|endoftext|>b";
  EXPECT_THAT(tokenizer->encode(text), testing::Not(testing::Contains(end)));
  const auto ids = tokenizer->encode(text, Specials::as_tokens);
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_EQ(ids[1], end);
}

TEST(Tokenizer, TheLongestOfSpecialTokensWins) {
  const std::vector<std::string> specials{"<a>", "<a><b>", "xyx"};
  const auto tokenizer = make_tokenizer(define_byte_tokenizer(specials));
  EXPECT_THAT(tokenizer->encode("<a><b><a>", Specials::as_tokens), ElementsAre(257, 256));
  for (const std::string text : {"<a><b><a>xyxyx", "<a><a><b", "xyxyxyx<a><"}) {
    for (size_t block : {1, 2, 3, 5}) {
      EXPECT_EQ(encode_in_parts(*tokenizer, text, block),
                tokenizer->encode(text, Specials::as_tokens))
          << text;
    }
  }
}

TEST(Tokenizer, CharactersAreNumberedInTheOrderOfUnicode) {
  const auto tokenizer =
      make_tokenizer(define_char_tokenizer("ba字éa\n", UnknownCharacters::refuse));
  EXPECT_EQ(tokenizer->vocab_size(), 5);
  EXPECT_THAT(tokenizer->encode("\nabé字"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(error_of([&] { tokenizer->encode("axe"); }),
              HasSubstr("character \"x\" is not among the 5"));
}

TEST(Tokenizer, UnknownCharactersFallBackToBytes) {
  const auto tokenizer = make_tokenizer(define_char_tokenizer("ab字"));
  EXPECT_EQ(tokenizer->vocab_size(), 257) << "字 and each byte once";
  EXPECT_EQ(tokenizer->encode("字").size(), 1u);
  EXPECT_EQ(tokenizer->encode("é").size(), 2u);
}

TEST(Tokenizer, AnIdOfAnotherTokenizerIsAnError) {
  const auto tokenizer = make_tokenizer(define_byte_tokenizer());
  const std::vector<int32_t> ids{65, 256};
  EXPECT_THAT(error_of([&] { tokenizer->decode(ids); }),
              HasSubstr("the id 256 stands for nothing"));
  const std::vector<int32_t> negative{-1};
  EXPECT_THAT(error_of([&] { tokenizer->decode(negative); }), HasSubstr("the id -1"));
}

TEST(Tokenizer, HashesTellTokenizersApart) {
  TokenizerDefinition definition = small_bpe()->definition();
  const uint64_t hash = hash_of(definition);
  EXPECT_EQ(hash, small_bpe()->hash()) << "the same each time";
  auto other = definition;
  other.pattern += "|x";
  EXPECT_NE(hash_of(other), hash);
  other = definition;
  std::swap(other.merges[0], other.merges[1]);
  EXPECT_NE(hash_of(other), hash);
  other = definition;
  other.specials[0].text = "<end>";
  EXPECT_NE(hash_of(other), hash);
  // As written to files: this number must never change.
  EXPECT_EQ(hash_of(define_byte_tokenizer()), 14060725229222745390u);
}

TEST(ByteLevel, EveryByteHasItsCharacter) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(from_byte_level(to_byte_level(all)), all);
  EXPECT_EQ(to_byte_level(" a\n"), "ĠaĊ");
  EXPECT_EQ(from_byte_level("字"), std::nullopt);
  EXPECT_EQ(byte_level_order()[0], '!');
  EXPECT_EQ(byte_level_order()[188], 0) << "the first that is not printable";
}

}  // namespace
}  // namespace brrr::text
