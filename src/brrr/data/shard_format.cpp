#include "brrr/data/shard_format.h"

#include <fmt/format.h>

#include <algorithm>

#include "brrr/base/error.h"
#include "brrr/io/crc32c.h"
#include "brrr/io/little_endian.h"

namespace brrr {
namespace {

constexpr std::string_view kMagic = "brrrtoks";
constexpr uint32_t kLastFlag = 1;

// Offsets of the header's fields.
enum Field : size_t {
  kVersionAt = 8,         // u32
  kTokenBytesAt = 12,     // u32
  kFlagsAt = 16,          // u32
  kShardIndexAt = 20,     // u32
  kTokenCountAt = 24,     // u64
  kDocumentCountAt = 32,  // u64
  kVocabSizeAt = 40,      // u64
  kEndOfTextAt = 48,      // i64
  kDocumentsSumAt = 56,   // u32
  kBlockTableSumAt = 60,  // u32
  kTokenizerHashAt = 64,  // 64 characters, filled up with zeros
  kReservedAt = 128,      // zeros
  kHeaderSumAt = 252,     // u32
};

constexpr int64_t kMaxCount = int64_t{1} << 56;  // sizes in bytes stay far from overflow

constexpr int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

int64_t load_count(std::span<const std::byte> file, size_t field, std::string_view what,
                   std::string_view name) {
  const auto count = load_le<uint64_t>(file, field);
  check(count <= static_cast<uint64_t>(kMaxCount), name, ": the header names ", count, " ", what,
        ", more than any file holds");
  return static_cast<int64_t>(count);
}

ShardHeader decode_header(std::span<const std::byte> file, std::string_view name) {
  ShardHeader header;
  const auto token_bytes = load_le<uint32_t>(file, kTokenBytesAt);
  check(token_bytes == 2 || token_bytes == 4, name, ": tokens of ", token_bytes,
        " bytes; shards have 2 or 4");
  const auto flags = load_le<uint32_t>(file, kFlagsAt);
  check((flags & ~kLastFlag) == 0, name, ": unknown flags ", flags, " in the header");
  header.dtype = token_bytes == 2 ? DType::u16 : DType::u32;
  header.is_last = (flags & kLastFlag) != 0;
  header.shard_index = load_le<uint32_t>(file, kShardIndexAt);
  header.token_count = load_count(file, kTokenCountAt, "tokens", name);
  header.document_count = load_count(file, kDocumentCountAt, "documents", name);
  header.vocab_size = load_count(file, kVocabSizeAt, "words in the vocabulary", name);
  header.end_of_text = load_le<int64_t>(file, kEndOfTextAt);
  check(header.end_of_text >= -1 && header.end_of_text < std::max<int64_t>(header.vocab_size, 1),
        name, ": end-of-text token ", header.end_of_text, " is outside the vocabulary of ",
        header.vocab_size);
  header.documents_checksum = load_le<uint32_t>(file, kDocumentsSumAt);
  header.block_table_checksum = load_le<uint32_t>(file, kBlockTableSumAt);
  const std::string_view hash(reinterpret_cast<const char*>(file.data()) + kTokenizerHashAt,
                              kMaxTokenizerHash);
  header.tokenizer_hash = hash.substr(0, std::min(hash.find('\0'), hash.size()));
  return header;
}

void check_sum(std::span<const std::byte> bytes, uint32_t expected, std::string_view what,
               std::string_view name) {
  const uint32_t found = crc32c(bytes);
  if (found == expected) return;
  fail(name, ": damaged: the ", what, " have ", crc32c_text(found), ", the header says ",
       crc32c_text(expected), "; make the file again with `brrr data prepare`");
}

void check_documents(std::span<const std::byte> starts, const ShardHeader& header,
                     std::string_view name) {
  int64_t before = -1;
  for (int64_t i = 0; i < header.document_count; ++i) {
    const auto start = load_le<uint64_t>(starts, static_cast<size_t>(i) * 8);
    check(start < static_cast<uint64_t>(header.token_count) && static_cast<int64_t>(start) > before,
          name, ": document ", i, " starts at token ", start,
          ", which is not between its neighbours");
    before = static_cast<int64_t>(start);
  }
}

}  // namespace

ShardLayout shard_layout(const ShardHeader& header) {
  const int64_t token_bytes = storage_bytes(header.dtype, header.token_count);
  ShardLayout layout{};
  layout.blocks = round_up(token_bytes, kShardBlockBytes) / kShardBlockBytes;
  layout.tokens_offset = kShardHeaderBytes;
  layout.documents_offset = round_up(layout.tokens_offset + token_bytes, 8);
  layout.block_table_offset = layout.documents_offset + 8 * header.document_count;
  layout.file_bytes = layout.block_table_offset + 4 * layout.blocks;
  return layout;
}

ShardHeaderBytes encode_shard_header(const ShardHeader& header) {
  invariant(header.tokenizer_hash.size() <= kMaxTokenizerHash, "a tokenizer hash of more than 64");
  ShardHeaderBytes bytes{};
  const std::span<std::byte> out(bytes);
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  store_le(out, kVersionAt, kShardVersion);
  store_le(out, kTokenBytesAt, header.dtype == DType::u16 ? uint32_t{2} : uint32_t{4});
  store_le(out, kFlagsAt, header.is_last ? kLastFlag : uint32_t{0});
  store_le(out, kShardIndexAt, static_cast<uint32_t>(header.shard_index));
  store_le(out, kTokenCountAt, static_cast<uint64_t>(header.token_count));
  store_le(out, kDocumentCountAt, static_cast<uint64_t>(header.document_count));
  store_le(out, kVocabSizeAt, static_cast<uint64_t>(header.vocab_size));
  store_le(out, kEndOfTextAt, header.end_of_text);
  store_le(out, kDocumentsSumAt, header.documents_checksum);
  store_le(out, kBlockTableSumAt, header.block_table_checksum);
  std::memcpy(bytes.data() + kTokenizerHashAt, header.tokenizer_hash.data(),
              header.tokenizer_hash.size());
  store_le(out, kHeaderSumAt, crc32c(out.first(kHeaderSumAt)));
  return bytes;
}

bool is_shard(std::span<const std::byte> file) {
  return file.size() >= kMagic.size() &&
         std::memcmp(file.data(), kMagic.data(), kMagic.size()) == 0;
}

ShardHeader parse_shard(std::span<const std::byte> file, std::string_view name) {
  check(is_shard(file), name, ": not a file of tokens made by brrr");
  check(file.size() >= kShardHeaderBytes, name, ": cut off inside its header, after ", file.size(),
        " bytes");
  const auto version = load_le<uint32_t>(file, kVersionAt);
  check(version == kShardVersion, name, ": a token file of version ", version,
        "; this program reads version ", kShardVersion, ": make it again with `brrr data prepare`");
  check_sum(file.first(kHeaderSumAt), load_le<uint32_t>(file, kHeaderSumAt), "header's bytes",
            name);

  ShardHeader header = decode_header(file, name);
  // Both counts are below 2^56, so these sums cannot overflow; the tables are read only once they are
  // known to lie inside the file.
  const ShardLayout layout = shard_layout(header);
  check(layout.file_bytes == static_cast<int64_t>(file.size()), name, ": ", header.token_count,
        " tokens and ", header.document_count, " documents make a file of ", layout.file_bytes,
        " bytes; this one has ", file.size(),
        ": was it cut off? Make it again with `brrr data prepare`");
  const auto part = [&](int64_t from, int64_t to) {
    return file.subspan(static_cast<size_t>(from), static_cast<size_t>(to - from));
  };
  const auto starts = part(layout.documents_offset, layout.block_table_offset);
  check_sum(starts, header.documents_checksum, "document starts", name);
  check_sum(part(layout.block_table_offset, layout.file_bytes), header.block_table_checksum,
            "block checksums", name);
  check_documents(starts, header, name);
  return header;
}

std::string shard_file_name(std::string_view split, int64_t index) {
  return fmt::format("{}-{:05}.tokens", split, index);
}

}  // namespace brrr
