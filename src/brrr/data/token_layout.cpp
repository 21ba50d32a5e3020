#include "brrr/data/token_layout.h"

#include "brrr/base/error.h"
#include "brrr/io/little_endian.h"
#include "brrr/io/npy_header.h"

namespace brrr {
namespace {

// llm.c, dev/data/data_common.py and llmc/dataloader.h: int32 header[256] = {magic, version, count}.
constexpr int64_t kLlmcHeaderBytes = 256 * 4;
struct LlmcKind {
  int32_t magic, version;
  DType dtype;
};
constexpr LlmcKind kLlmcKinds[] = {{20240520, 1, DType::u16}, {20240801, 7, DType::u32}};

const LlmcKind* llmc_kind(std::span<const std::byte> file) {
  if (file.size() < kLlmcHeaderBytes) return nullptr;
  for (const LlmcKind& kind : kLlmcKinds) {
    if (load_le<int32_t>(file, 0) == kind.magic) return &kind;
  }
  return nullptr;
}

TokenLayout llmc_layout(std::span<const std::byte> file, const LlmcKind& kind,
                        std::string_view name) {
  const auto version = load_le<int32_t>(file, 4), count = load_le<int32_t>(file, 8);
  check(version == kind.version, name, ": an llm.c file with magic ", kind.magic, " and version ",
        version, "; version ", kind.version, " is known");
  const auto body_bytes = static_cast<int64_t>(file.size()) - kLlmcHeaderBytes;
  check(count >= 0 && storage_bytes(kind.dtype, count) == body_bytes, name,
        ": the llm.c header names ", count, " tokens, ", storage_bytes(kind.dtype, count),
        " bytes; ", body_bytes, " follow it: was the file cut off?");
  return {.format = TokenFormat::llmc,
          .dtype = kind.dtype,
          .first_byte = kLlmcHeaderBytes,
          .token_count = count};
}

TokenLayout npy_layout(std::span<const std::byte> file, std::string_view name) {
  const NpyHeader header = parse_npy_header(file, name);
  check(header.shape.size() == 1, name, ": an array with ", header.shape.size(),
        " axes; tokens are an array with one");
  TokenLayout layout{
      .format = TokenFormat::npy, .first_byte = header.data_offset, .token_count = header.count};
  const bool is_signed = header.kind == 'i';
  check(is_signed || header.kind == 'u', name, ": an array of kind '", header.kind,
        "'; tokens are integers");
  check(is_signed || header.item_bytes < 8, name,
        ": tokens as unsigned numbers of 64 bits; save them as int64, uint32 or uint16");
  check(!is_signed || header.item_bytes > 1, name, ": tokens as int8; save them as uint8");
  switch (header.item_bytes) {
    case 1: layout.dtype = DType::u8; break;
    case 2: layout.dtype = is_signed ? DType::i16 : DType::u16; break;
    case 4: layout.dtype = is_signed ? DType::i32 : DType::u32; break;
    default: layout.dtype = DType::i64;
  }
  return layout;
}

TokenLayout raw_layout(std::span<const std::byte> file, std::string_view name, DType dtype) {
  check(is_integer(dtype) && !is_packed(dtype) && dtype != DType::i8, name,
        ": raw tokens of dtype ", dtype, "; use u8, u16, u32, i16, i32 or i64");
  const auto bytes = static_cast<int64_t>(file.size());
  const int64_t item_bytes = bit_size(dtype) / 8;
  check(bytes % item_bytes == 0, name, ": ", bytes, " bytes are no whole number of ", dtype,
        " tokens");
  return {.format = TokenFormat::raw, .dtype = dtype, .token_count = bytes / item_bytes};
}

}  // namespace

std::string to_text(TokenFormat format) {
  switch (format) {
    case TokenFormat::brrr: return "brrr";
    case TokenFormat::llmc: return "llm.c";
    case TokenFormat::npy: return "npy";
    case TokenFormat::raw: return "raw";
  }
  return "unknown";
}

TokenLayout find_tokens(std::span<const std::byte> file, std::string_view name,
                        std::optional<DType> raw_dtype) {
  if (raw_dtype) return raw_layout(file, name, *raw_dtype);
  if (is_shard(file)) {
    ShardHeader header = parse_shard(file, name);
    return {.format = TokenFormat::brrr,
            .dtype = header.dtype,
            .first_byte = kShardHeaderBytes,
            .token_count = header.token_count,
            .shard = std::move(header)};
  }
  if (is_npy(file)) return npy_layout(file, name);
  if (const LlmcKind* kind = llmc_kind(file)) return llmc_layout(file, *kind, name);
  check(name.ends_with(".bin"), name,
        ": no token file: no format that brrr knows begins like this. "
        "Text becomes tokens by `brrr data prepare`; raw integers need their dtype (--raw u16)");
  return raw_layout(file, name, DType::u16);
}

}  // namespace brrr
