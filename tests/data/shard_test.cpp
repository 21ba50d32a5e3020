// Shards: what is written is read, what is damaged is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "brrr/data/shard_writer.h"
#include "brrr/data/token_file.h"
#include "brrr/data/token_set.h"
#include "brrr/io/crc32c.h"
#include "support/error_of.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> read(const TokenFile& file, int64_t first, int64_t count) {
  std::vector<int64_t> tokens(static_cast<size_t>(count));
  file.read(first, tokens);
  return tokens;
}

std::vector<int32_t> range(int32_t first, int32_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

// Documents of 3, 4 and 5 tokens, each after the end-of-text token 999: 15 tokens.
ShardsWritten write_small(const std::filesystem::path& folder, Bytes shard_bytes = 1_MiB,
                          int64_t vocab_size = 1000) {
  ShardWriter writer({.folder = folder,
                      .vocab_size = vocab_size,
                      .end_of_text = 999,
                      .tokenizer_hash = "cafe",
                      .shard_bytes = shard_bytes});
  for (int32_t size : {3, 4, 5}) {
    writer.begin_document();
    writer.append(range(10 * size, size));
  }
  return writer.finish();
}

TEST(Shards, ComeBackAsWritten) {
  const TempFolder folder;
  for (int64_t vocab_size : {1000, 65536, 65537}) {
    const ShardsWritten written = write_small(folder.path(), 1_MiB, vocab_size);
    EXPECT_EQ(written.token_count, 15);
    EXPECT_EQ(written.document_count, 3);
    const auto file = TokenFile::open(written.paths.at(0));
    const ShardHeader& header = file->layout().shard.value();
    EXPECT_EQ(header.dtype, vocab_size <= 65536 ? DType::u16 : DType::u32);
    EXPECT_EQ(header.vocab_size, vocab_size);
    EXPECT_EQ(header.end_of_text, 999);
    EXPECT_EQ(header.tokenizer_hash, "cafe");
    EXPECT_TRUE(header.is_last);
    EXPECT_EQ(file->document_count(), 3);
    EXPECT_THAT(read(*file, 0, 15),
                ElementsAre(999, 30, 31, 32, 999, 40, 41, 42, 43, 999, 50, 51, 52, 53, 54));
    file->verify();
  }
}

TEST(Shards, KnowWhereDocumentsStart) {
  const TempFolder folder;
  const auto file = TokenFile::open(write_small(folder.path()).paths[0]);
  EXPECT_EQ(file->next_document(0), 0);
  EXPECT_EQ(file->next_document(1), 4);
  EXPECT_EQ(file->next_document(9), 9);
  EXPECT_EQ(file->next_document(10), 15) << "the end";
  std::vector<int64_t> numbers(8);
  file->number_documents(2, read(*file, 2, 8), numbers);
  EXPECT_THAT(numbers, ElementsAre(0, 0, 1, 1, 1, 1, 1, 2));
}

TEST(Shards, AreCutBySizeAndOpenedAsOne) {
  const TempFolder folder;
  const ShardsWritten written = write_small(folder.path(), 8_B);  // 4 tokens each
  ASSERT_EQ(written.paths.size(), 4u);
  EXPECT_EQ(written.paths[3].filename(), "train-00003.tokens");
  const TokenSet tokens = open_tokens(folder.path());
  EXPECT_EQ(tokens.token_count(), 15);
  EXPECT_THAT(read(*tokens.ranges[2].file, 0, 4), ElementsAre(43, 999, 50, 51));
  EXPECT_EQ(tokens.ranges[2].file->next_document(0), 1)
      << "43 goes on with a document begun before";
  EXPECT_EQ(tokens.ranges[3].file->document_count(), 0);
}

TEST(Shards, MissingOnesAreNamed) {
  const TempFolder folder;
  write_small(folder.path(), 8_B);
  std::filesystem::remove(folder / "train-00001.tokens");
  EXPECT_THAT(
      error_of([&] { open_tokens(folder.path()); }),
      HasSubstr("train-00002.tokens: says that it is shard 2, and stands in the place of shard 1"));
  std::filesystem::remove(folder / "train-00002.tokens");
  std::filesystem::remove(folder / "train-00003.tokens");
  EXPECT_THAT(error_of([&] { open_tokens(folder.path()); }),
              HasSubstr("train-00000.tokens: not the last shard, but no other follows"));
  EXPECT_THAT(error_of([&] { open_tokens(folder.path(), "validation"); }),
              HasSubstr("holds no validation-00000.tokens"));
}

TEST(Shards, OfTwoTokenizersAreRefused) {
  const TempFolder folder, other;
  write_small(folder.path(), 8_B);
  ShardWriter writer(
      {.folder = other.path(), .vocab_size = 1000, .tokenizer_hash = "beef", .shard_bytes = 8_B});
  writer.append(range(0, 15));
  writer.finish();
  std::filesystem::copy_file(other / "train-00002.tokens", folder / "train-00002.tokens",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(error_of([&] { open_tokens(folder.path()); }), HasSubstr("made with tokenizer beef"));
}

TEST(Shards, EveryFlippedBitIsFound) {
  const TempFolder folder;
  const auto path = write_small(folder.path()).paths[0];
  const std::string good = read_file(path);
  const ShardLayout layout = shard_layout(*TokenFile::open(path)->layout().shard);
  for (size_t at = 0; at < good.size(); ++at) {
    // The two bytes that fill up to a multiple of 8 after the tokens carry nothing.
    const bool is_padding = static_cast<int64_t>(at) >= layout.tokens_offset + 30 &&
                            static_cast<int64_t>(at) < layout.documents_offset;
    if (is_padding) continue;
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    const auto damaged = folder.write("damaged.tokens", bad);
    EXPECT_THAT(error_of([&] { TokenFile::open(damaged)->verify(); }),
                HasSubstr("damaged.tokens: "))
        << at;
  }
}

TEST(Shards, DamageNamesBlockAndChecksums) {
  const TempFolder folder;
  ShardWriter writer({.folder = folder.path(), .vocab_size = 50000});
  writer.append(range(0, 40000));
  writer.append(range(0, 40000));  // 160000 bytes: 3 blocks
  const auto path = writer.finish().paths[0];
  std::string bytes = read_file(path);
  bytes[kShardHeaderBytes + 2 * kShardBlockBytes + 10] ^= 4;
  const auto file = TokenFile::open(folder.write("damaged.tokens", bytes));
  EXPECT_EQ(read(*file, 0, 60000)[50000], 10000) << "blocks before it can be read";
  const std::string message = error_of([&] { read(*file, 65530, 10); });
  EXPECT_THAT(message,
              HasSubstr("damaged.tokens: damaged: tokens 65536 to 80000 (block 2) have crc32c "));
  EXPECT_THAT(message, HasSubstr(", the file says crc32c "));
  EXPECT_NE(error_of([&] { read(*file, 65530, 10); }), "no error") << "and again";
}

TEST(Shards, AnyTruncationIsFound) {
  const TempFolder folder;
  const std::string good = read_file(write_small(folder.path()).paths[0]);
  for (size_t size = 0; size < good.size(); ++size) {
    const auto cut = folder.write("cut.tokens", good.substr(0, size));
    EXPECT_THAT(error_of([&] { TokenFile::open(cut); }), HasSubstr("cut.tokens: ")) << size;
  }
  const auto longer = folder.write("longer.tokens", good + "x");
  EXPECT_THAT(error_of([&] { TokenFile::open(longer); }), HasSubstr("make a file of "));
}

TEST(Shards, HostileHeadersAreRefusedBeforeAllocation) {
  const auto open_with = [](const ShardHeader& header) {
    const ShardHeaderBytes bytes = encode_shard_header(header);  // with a right checksum
    return error_of([&] { parse_shard(bytes, "x"); });
  };
  EXPECT_THAT(open_with({.token_count = int64_t{1} << 55}), HasSubstr("this one has 256"));
  EXPECT_THAT(open_with({.token_count = int64_t{1} << 60}), HasSubstr("more than any file holds"));
  EXPECT_THAT(open_with({.token_count = -1}), HasSubstr("more than any file holds"));
  EXPECT_THAT(open_with({.document_count = int64_t{1} << 55}), HasSubstr("this one has 256"));
  EXPECT_THAT(open_with({.vocab_size = 10, .end_of_text = 10}), HasSubstr("end-of-text token 10"));
}

TEST(Shards, DocumentStartsMustAscend) {
  ShardHeader header{.token_count = 4, .document_count = 2, .vocab_size = 9};
  const std::vector<uint64_t> starts = {3, 3};
  header.documents_checksum = crc32c(std::as_bytes(std::span(starts)));
  const std::vector<std::byte> table(4);
  header.block_table_checksum = crc32c(table);
  const auto encoded = encode_shard_header(header);
  std::vector<std::byte> file(encoded.begin(), encoded.end());
  file.resize(file.size() + 8);
  const auto start_bytes = std::as_bytes(std::span(starts));
  file.insert(file.end(), start_bytes.begin(), start_bytes.end());
  file.insert(file.end(), table.begin(), table.end());
  EXPECT_THAT(error_of([&] { parse_shard(file, "x"); }), HasSubstr("document 1 starts at token 3"));
}

TEST(ShardsThreads, CheckAndForgetTogether) {
  const TempFolder folder;
  ShardWriter writer({.folder = folder.path(), .vocab_size = 50000});
  for (int i = 0; i < 10; ++i) writer.append(range(0, 50000));
  const auto file = TokenFile::open(writer.finish().paths[0], {.resident_limit = 256_KiB});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 4; ++reader) {
    readers.emplace_back([&, reader] {
      for (int64_t i = 0; i < 100; ++i) {
        const int64_t first = (i * 7919 + reader * 12345) % 499'000;
        if (read(*file, first, 1000)[999] != (first + 999) % 50000) ++wrong;
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Shards, WriterRefusesWhatDoesNotFit) {
  const TempFolder folder;
  ShardWriter writer({.folder = folder.path(), .vocab_size = 10});
  EXPECT_THAT(error_of([&] {
                writer.append(std::vector<int32_t>{3, 10});
              }),
              HasSubstr("token 10 is outside the vocabulary of 10"));
  EXPECT_THAT(error_of([&] { writer.finish(); }), HasSubstr("hold no token"));
  EXPECT_THAT(error_of([&] { ShardWriter({.folder = folder.path(), .vocab_size = 0}); }),
              HasSubstr("a vocabulary of 0"));
}

TEST(Shards, UnfinishedOnesLeaveNothing) {
  const TempFolder folder;
  {
    ShardWriter writer({.folder = folder.path(), .vocab_size = 10});
    writer.append(std::vector<int32_t>{1, 2, 3});
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace brrr
