// Finds the tokens in a file of any format that holds them:
//   brrr     our own shards (data/shard_format.h)
//   llm.c    a header of 256 int32, magic 20240520 (u16 tokens) or 20240801 (u32)
//   npy      a NumPy array of integers with one axis
//   raw      nothing but integers, such as nanoGPT's train.bin (u16)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "brrr/data/shard_format.h"
#include "brrr/tensor/dtype.h"

namespace brrr {

enum class TokenFormat : uint8_t { brrr, llmc, npy, raw };
std::string to_text(TokenFormat format);

struct TokenLayout {
  TokenFormat format = TokenFormat::raw;
  DType dtype = DType::u16;  // u8, u16, u32, i16, i32 or i64
  int64_t first_byte = 0;    // of the tokens; they need not be aligned
  int64_t token_count = 0;
  std::optional<ShardHeader> shard;  // of our own format
};

// `raw_dtype` reads the file as raw integers whatever its first bytes are. Without it the format is
// recognised by those, and a file that no format claims is raw u16 when it is called *.bin, as nanoGPT
// writes it, and refused otherwise. All sizes are checked against the file before anything is read.
TokenLayout find_tokens(std::span<const std::byte> file, std::string_view name,
                        std::optional<DType> raw_dtype = {});

}  // namespace brrr
