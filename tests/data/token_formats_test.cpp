// Token files of others, and files larger than memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <numeric>

#include "brrr/data/batches.h"
#include "brrr/data/token_set.h"
#include "brrr/io/crc32c.h"
#include "brrr/io/npy.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "support/error_of.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> all_tokens(const TokenFile& file) {
  std::vector<int64_t> tokens(static_cast<size_t>(file.token_count()));
  file.read(0, tokens);
  return tokens;
}

template <typename T>
std::string llmc_file(int32_t magic, int32_t version, int32_t count, std::vector<T> tokens) {
  std::vector<int32_t> header(256, 0);
  header[0] = magic, header[1] = version, header[2] = count;
  std::string bytes(reinterpret_cast<const char*>(header.data()), 1024);
  return bytes.append(reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(T));
}

TEST(TokenFormats, LlmcIsReadByItsMagic) {
  const TempFolder folder;
  const auto gpt2 = TokenFile::open(
      folder.write("a.bin", llmc_file<uint16_t>(20240520, 1, 3, {50256, 1, 65535})));
  EXPECT_EQ(gpt2->layout().format, TokenFormat::llmc);
  EXPECT_THAT(all_tokens(*gpt2), ElementsAre(50256, 1, 65535));
  const auto llama =
      TokenFile::open(folder.write("b.bin", llmc_file<uint32_t>(20240801, 7, 2, {128000, 5})));
  EXPECT_THAT(all_tokens(*llama), ElementsAre(128000, 5));
}

TEST(TokenFormats, LlmcHeadersAreHeldAgainstTheFile) {
  const TempFolder folder;
  const auto open = [&](const std::string& bytes) {
    return error_of([&] { TokenFile::open(folder.write("a.bin", bytes)); });
  };
  EXPECT_THAT(open(llmc_file<uint16_t>(20240520, 1, 4, {1, 2, 3})),
              HasSubstr("names 4 tokens, 8 bytes; 6 follow it"));
  EXPECT_THAT(open(llmc_file<uint16_t>(20240520, 1, -1, {1, 2, 3})), HasSubstr("-1 tokens"));
  EXPECT_THAT(open(llmc_file<uint16_t>(20240520, 2, 3, {1, 2, 3})), HasSubstr("version 2"));
}

TEST(TokenFormats, NanoGptFilesAreRawU16) {
  const TempFolder folder;
  const std::vector<uint16_t> tokens = {7, 50256, 9};
  const auto file = TokenFile::open(folder.write_values<uint16_t>("train.bin", tokens),
                                    {.document_token = 50256});
  EXPECT_EQ(file->layout().format, TokenFormat::raw);
  EXPECT_THAT(all_tokens(*file), ElementsAre(7, 50256, 9));
  std::vector<int64_t> numbers(3);
  file->number_documents(0, all_tokens(*file), numbers);
  EXPECT_THAT(numbers, ElementsAre(0, 1, 1));
}

TEST(TokenFormats, RawIntegersOfAnyDType) {
  const TempFolder folder;
  std::vector<int32_t> numbers(10);
  std::iota(numbers.begin(), numbers.end(), 1);
  const auto path = folder.write_values<int32_t>("numbers.dat", numbers);
  const auto file = TokenFile::open(path, {.raw_dtype = DType::i32});
  EXPECT_THAT(all_tokens(*file), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_EQ(TokenFile::open(path, {.raw_dtype = DType::u8})->token_count(), 40);
  EXPECT_EQ(TokenFile::open(path, {.raw_dtype = DType::i64})->token_count(), 5);
  EXPECT_THAT(error_of([&] { TokenFile::open(path); }), HasSubstr("raw integers need their dtype"));
  EXPECT_THAT(error_of([&] { TokenFile::open(path, {.raw_dtype = DType::f32}); }),
              HasSubstr("use u8"));
  const auto odd = folder.write("odd.bin", "abc");
  EXPECT_THAT(error_of([&] { TokenFile::open(odd); }), HasSubstr("no whole number of u16 tokens"));
}

TEST(TokenFormats, NpyArraysOfIntegers) {
  const TempFolder folder;
  for (DType dtype : {DType::u8, DType::u16, DType::u32, DType::i16, DType::i32, DType::i64}) {
    save_npy(folder / "x.npy", cast(tensor({3, 1, 4}), dtype));
    const auto file = TokenFile::open(folder / "x.npy");
    EXPECT_EQ(file->layout().dtype, dtype);
    EXPECT_THAT(all_tokens(*file), ElementsAre(3, 1, 4));
  }
  save_npy(folder / "x.npy", tensor({3, 1, 4}));
  EXPECT_THAT(error_of([&] { TokenFile::open(folder / "x.npy"); }),
              HasSubstr("tokens are integers"));
  save_npy(folder / "x.npy", cast(tensor({{3, 1}}), DType::i64));
  EXPECT_THAT(error_of([&] { TokenFile::open(folder / "x.npy"); }), HasSubstr("2 axes"));
}

TEST(TokenFormats, ReadsNothingOutsideTheFile) {
  const auto file = TokenFile::from_memory({.name = "memory", .tokens = {1, 2, 3}});
  std::vector<int64_t> two(2);
  EXPECT_THAT(error_of([&] { file->read(2, two); }),
              HasSubstr("memory: 2 tokens from 2 on were asked for; there are 3"));
  EXPECT_NE(error_of([&] { file->read(-1, two); }), "no error");
  EXPECT_NE(error_of([&] { file->read(INT64_MAX, two); }), "no error");
}

TEST(TokenFormats, ATailIsCutWhereADocumentStarts) {
  std::vector<int32_t> tokens(100);
  const TokenSet set = whole_file(
      TokenFile::from_memory({.name = "memory", .tokens = tokens, .document_starts = {0, 50, 93}}));
  const TokenSplit by_document = split_tail(set, 0.1);
  EXPECT_EQ(by_document.front.token_count(), 93);
  EXPECT_EQ(by_document.tail.token_count(), 7);
  const TokenSplit inside = split_tail(set, 0.05);
  EXPECT_EQ(inside.front.token_count(), 95) << "no document starts in the last part";
  EXPECT_THAT(error_of([&] { split_tail(set, 1); }), HasSubstr("between 0 and 1"));
}

// ---- larger than memory --------------------------------------------------------------------------------
int64_t
resident_file_bytes() {  // pages of mapped files in this process; on a tmpfs they are "Shmem"
  std::ifstream status("/proc/self/status");
  int64_t kib = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssFile:")) kib += std::stoll(line.substr(8));
    if (line.starts_with("RssShmem:")) kib += std::stoll(line.substr(9));
  }
  return kib * 1024;
}

int64_t machine_memory_bytes() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

// A shard of zeros that takes a few MiB on disk: a hole for the tokens, and the tables after it.
std::filesystem::path write_sparse_shard(const TempFolder& folder, int64_t token_count) {
  ShardHeader header{.is_last = true, .token_count = token_count, .vocab_size = 50257};
  const ShardLayout layout = shard_layout(header);
  const std::vector<std::byte> zeros(kShardBlockBytes);
  const std::vector<uint32_t> sums(static_cast<size_t>(layout.blocks), crc32c(zeros));
  header.block_table_checksum = crc32c(std::as_bytes(std::span(sums)));
  const ShardHeaderBytes bytes = encode_shard_header(header);
  std::ofstream file(folder / "sparse.tokens", std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), kShardHeaderBytes);
  file.seekp(layout.block_table_offset);
  file.write(reinterpret_cast<const char*>(sums.data()),
             static_cast<std::streamsize>(sums.size() * sizeof(uint32_t)));
  return folder / "sparse.tokens";
}

TEST(TokenFiles, LargerThanMemoryAreReadWithBoundedResidentMemory) {
  const TempFolder folder;
  const int64_t blocks = (machine_memory_bytes() + (16_GiB).value()) / kShardBlockBytes;
  const int64_t token_count = blocks * kShardBlockBytes / 2;
  const auto path = write_sparse_shard(folder, token_count);
  if (std::filesystem::file_size(path) < static_cast<uint64_t>(token_count) * 2)
    GTEST_SKIP() << "this file system holds no sparse files";
  const int64_t before = resident_file_bytes();
  ASSERT_GT(before, 0);
  constexpr Bytes kLimit = 8_MiB;
  const Batches batches({{.tokens = open_tokens(path, "train", {.resident_limit = kLimit})}},
                        {.batch = 64, .context = 1024, .vocab_size = 50257});
  int64_t most = 0;
  for (int64_t step = 0; step < 40; ++step) {  // 2560 rows all over the file: 160 MiB of blocks
    const Batch batch = batches.at(step);
    EXPECT_EQ(batch.inputs.data<int64_t>()[5], 0);
    most = std::max(most, resident_file_bytes() - before);
  }
  // The limit, the blocks that the read in hand touches, and the pages that faults bring along.
  EXPECT_LT(most, 2 * kLimit.value() + (4_MiB).value());
}

}  // namespace
}  // namespace brrr
