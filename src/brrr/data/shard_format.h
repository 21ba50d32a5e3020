// brrr's own token files, "shards": one file holds a header, tokens, where documents start, and checksums.
//
//   0                 header, 256 bytes, little endian (fields below; bytes 252 to 255 are its crc32c)
//   256               tokens, u16 or u32
//   then, 8-aligned   document starts, u64 each: the position of a document's first token in this file.
//                     Ascending. Tokens before the first start go on with the document of the shard before.
//   then              block checksums, u32 each: the crc32c of each 64 KiB of tokens
//
// Blocks are checked when they are first read, so opening costs nothing and no token is used unchecked.
// A text is cut into shards by size; they are named train-00000.tokens, train-00001.tokens, ..., and the
// last one says that it is the last.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "brrr/tensor/dtype.h"

namespace brrr {

inline constexpr uint32_t kShardVersion = 1;
inline constexpr int64_t kShardHeaderBytes = 256;
inline constexpr int64_t kShardBlockBytes = 64 * 1024;
inline constexpr size_t kMaxTokenizerHash = 64;

struct ShardHeader {
  DType dtype = DType::u16;  // of the tokens: u16 or u32
  bool is_last = false;
  int64_t shard_index = 0;
  int64_t token_count = 0;
  int64_t document_count = 0;  // documents that start in this shard
  int64_t vocab_size = 0;
  int64_t end_of_text = -1;    // the token that begins every document; -1 when there is none
  std::string tokenizer_hash;  // at most 64 characters
  uint32_t documents_checksum = 0;
  uint32_t block_table_checksum = 0;
  bool operator==(const ShardHeader&) const = default;
};

// Where the parts lie; follows from the counts.
struct ShardLayout {
  int64_t tokens_offset, documents_offset, block_table_offset, file_bytes;
  int64_t blocks;
};
ShardLayout shard_layout(const ShardHeader& header);

using ShardHeaderBytes = std::array<std::byte, kShardHeaderBytes>;
ShardHeaderBytes encode_shard_header(const ShardHeader& header);

bool is_shard(std::span<const std::byte> file);
// Header and document starts of a whole file, everything checked but the tokens themselves. Throws Error
// with `name`, what does not hold, and both values.
ShardHeader parse_shard(std::span<const std::byte> file, std::string_view name);

// "train-00007.tokens"
std::string shard_file_name(std::string_view split, int64_t index);

}  // namespace brrr
