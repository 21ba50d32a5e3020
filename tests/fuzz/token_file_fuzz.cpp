// libFuzzer on files of tokens: tokens that lie inside the file, or an Error.
// Checksums would stop nearly every input at the door, so where a file starts as a shard, they are made
// right first: the first half of inputs is held against everything behind them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "brrr/base/error.h"
#include "brrr/data/token_layout.h"
#include "brrr/io/crc32c.h"
#include "brrr/io/little_endian.h"

namespace {

// The input as a shard: its first bytes are the header's counts, the others follow the header.
std::vector<std::byte> as_shard(std::span<const std::byte> input) {
  brrr::ShardHeader header;
  std::vector<std::byte> fields(32);
  const size_t used = std::min(fields.size(), input.size());
  std::copy_n(input.begin(), used, fields.begin());
  header.dtype = (static_cast<int>(fields[0]) & 1) != 0 ? brrr::DType::u32 : brrr::DType::u16;
  header.token_count = brrr::load_le<int64_t>(fields, 1) >> (static_cast<int>(fields[24]) & 63);
  header.document_count = brrr::load_le<int64_t>(fields, 9) >> (static_cast<int>(fields[25]) & 63);
  header.vocab_size = brrr::load_le<uint16_t>(fields, 17);
  header.end_of_text = brrr::load_le<int16_t>(fields, 19);
  const std::span<const std::byte> body = input.subspan(used);
  // Where the counts fit the body, its tables get right checksums; where not, parsing must say so.
  const bool is_small = header.token_count >= 0 && header.token_count < 1000 &&
                        header.document_count >= 0 && header.document_count < 1000;
  if (is_small) {
    const brrr::ShardLayout layout = brrr::shard_layout(header);
    if (layout.file_bytes == static_cast<int64_t>(body.size()) + brrr::kShardHeaderBytes) {
      const auto starts = static_cast<size_t>(layout.documents_offset - brrr::kShardHeaderBytes);
      const auto sums = static_cast<size_t>(layout.block_table_offset - brrr::kShardHeaderBytes);
      header.documents_checksum = brrr::crc32c(body.subspan(starts, sums - starts));
      header.block_table_checksum = brrr::crc32c(body.subspan(sums));
    }
  }
  const brrr::ShardHeaderBytes encoded = brrr::encode_shard_header(header);
  std::vector<std::byte> file(encoded.begin(), encoded.end());
  file.insert(file.end(), body.begin(), body.end());
  return file;
}

void read_all(std::span<const std::byte> file, std::string_view name) {
  try {
    const brrr::TokenLayout layout = brrr::find_tokens(file, name);
    const int64_t bytes = brrr::storage_bytes(layout.dtype, layout.token_count);
    if (layout.first_byte < 0 || layout.token_count < 0 ||
        bytes > static_cast<int64_t>(file.size()) - layout.first_byte)
      std::abort();
  } catch (const brrr::Error&) {  // what a damaged file should do
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> input(reinterpret_cast<const std::byte*>(data), size);
  read_all(input, "fuzzed.tokens");
  read_all(input, "fuzzed.bin");
  read_all(as_shard(input), "fuzzed.tokens");
  return 0;
}
