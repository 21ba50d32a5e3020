// Text becomes shards: all of it, in order, split by document.
#include "brrr/data/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "brrr/data/token_set.h"
#include "support/error_of.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kEnd = 256;

TokenEncoder byte_encoder() {
  return {.encode =
              [](std::string_view text) {
                std::vector<int32_t> tokens;
                for (char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
                return tokens;
              },
          .vocab_size = 257,
          .hash = "bytes",
          .end_of_text = kEnd};
}

// The documents of a split, put together again from its tokens.
std::vector<std::string> documents_of(const std::filesystem::path& folder, std::string_view split) {
  std::vector<std::string> documents;
  for (const TokenRange& range : open_tokens(folder, split).ranges) {
    std::vector<int64_t> tokens(static_cast<size_t>(range.count));
    range.file->read(0, tokens);
    for (int64_t token : tokens) {
      if (token == kEnd) {
        documents.emplace_back();
      } else {
        documents.back() += static_cast<char>(token);
      }
    }
  }
  return documents;
}

TEST(Prepare, KeepsEveryByteOfEveryDocument) {
  const TempFolder folder;
  const auto a = folder.write("a.txt", "one<sep>two\n<sep>\n<sep>three"),
             b = folder.write("b.txt", "four");
  const Prepared prepared = prepare_tokens(
      {a, b}, byte_encoder(),
      {.folder = folder / "out", .separator = "<sep>", .validation_part = 0, .shard_bytes = 16_B});
  EXPECT_THAT(documents_of(folder / "out", "train"), ElementsAre("one", "two\n", "three", "four"));
  EXPECT_EQ(prepared.train.document_count, 4);
  EXPECT_EQ(prepared.train.token_count, 16 + 4);
  EXPECT_EQ(prepared.train.paths.size(), 3u) << "8 tokens a shard";
  EXPECT_TRUE(prepared.validation.paths.empty());
  EXPECT_EQ(prepared.text_bytes, 31_B + 1_B);
}

TEST(Prepare, SplitsByDocumentAndSeed) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 400; ++i) text += join_text("document ", i, "|");
  const auto file = folder.write("a.txt", text);
  const auto split = [&](uint64_t seed) {
    prepare_tokens({file}, byte_encoder(),
                   {.folder = folder / "out",
                    .separator = "|",
                    .validation_part = 0.25,
                    .seed = seed,
                    .replace = true});
    return documents_of(folder / "out", "validation");
  };
  const auto held_out = split(1);
  EXPECT_NEAR(static_cast<double>(held_out.size()), 100, 45);  // five standard deviations
  EXPECT_EQ(held_out.size() + documents_of(folder / "out", "train").size(), 400u);
  EXPECT_EQ(split(1), held_out);
  EXPECT_NE(split(2), held_out);
}

TEST(Prepare, OneDocumentGivesItsTail) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += i % 7 == 6 ? "words\n" : "words ";
  const auto file = folder.write("a.txt", text);
  prepare_tokens({file}, byte_encoder(), {.folder = folder / "out", .validation_part = 0.1});
  const auto train = documents_of(folder / "out", "train"),
             held = documents_of(folder / "out", "validation");
  ASSERT_EQ(train.size(), 1u);
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(train[0] + held[0], text);
  EXPECT_NEAR(static_cast<double>(held[0].size()), 1200, 20);  // a word and a line
}

TEST(Prepare, LongDocumentsAreEncodedInPieces) {
  const TempFolder folder;
  std::string text;
  while (text.size() < 3'000'000) text += "some words of a long text and \xC3\xA9 ";
  const auto file = folder.write("a.txt", text);
  TokenEncoder encoder = byte_encoder();
  const auto encode = encoder.encode;
  std::atomic<size_t> longest = 0;
  encoder.encode = [&](std::string_view piece) {
    size_t before = longest;
    while (before < piece.size() && !longest.compare_exchange_weak(before, piece.size())) {
    }
    return encode(piece);
  };
  prepare_tokens({file}, encoder, {.folder = folder / "out", .validation_part = 0});
  EXPECT_THAT(documents_of(folder / "out", "train"), ElementsAre(text));
  EXPECT_LE(longest, size_t{1} << 18);
}

TEST(Prepare, CutsWhereNoTokenIs) {
  EXPECT_EQ(find_cut("one two thr"), 7u) << "before the last space between letters";
  EXPECT_EQ(find_cut("12 34\n56"), 6u) << "after a line";
  EXPECT_EQ(find_cut("\xE6\x97\xA5\xE6\x9C"), 3u) << "not inside a character";
  EXPECT_EQ(find_cut("\xE6\x97\xA5"), 3u);
  EXPECT_EQ(find_cut("\x80\x80\x80\x80\x80"), 5u) << "bytes that are no UTF-8";
  EXPECT_EQ(find_cut("a"), 1u);
}

TEST(Prepare, OlderShardsAreNotMixedIn) {
  const TempFolder folder;
  const auto file = folder.write("a.txt", "some text");
  const PrepareOptions options{.folder = folder / "out", .validation_part = 0};
  prepare_tokens({file}, byte_encoder(), options);
  EXPECT_THAT(error_of([&] { prepare_tokens({file}, byte_encoder(), options); }),
              HasSubstr("train-00000.tokens: stands there already"));
}

TEST(Prepare, BadInputsCostNothing) {
  const TempFolder folder;
  const auto file = folder.write("a.txt", "some text"), empty = folder.write("empty.txt", "");
  const PrepareOptions options{.folder = folder / "out", .validation_part = 0, .replace = true};
  prepare_tokens({file}, byte_encoder(), options);
  EXPECT_THAT(error_of([&] {
                prepare_tokens({file, folder / "no.txt"}, byte_encoder(), options);
              }),
              HasSubstr("no.txt: cannot be opened"));
  EXPECT_THAT(documents_of(folder / "out", "train"), ElementsAre("some text")) << "still there";
  EXPECT_THAT(error_of([&] { prepare_tokens({empty}, byte_encoder(), options); }),
              HasSubstr("empty.txt: the file is empty"));
  EXPECT_THAT(error_of([&] { prepare_tokens({}, byte_encoder(), options); }),
              HasSubstr("no files"));
}

}  // namespace
}  // namespace brrr
