#include "brrr/data/token_file.h"

#include <algorithm>

#include "brrr/base/error.h"
#include "brrr/io/crc32c.h"
#include "brrr/io/little_endian.h"

namespace brrr {
namespace {

template <typename T>
void widen_tokens(std::span<const std::byte> bytes, int64_t first, std::span<int64_t> out) {
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = load_le<T>(bytes, (static_cast<size_t>(first) + i) * sizeof(T));
}

void widen(DType dtype, std::span<const std::byte> bytes, int64_t first, std::span<int64_t> out) {
  switch (dtype) {
    case DType::u8: return widen_tokens<uint8_t>(bytes, first, out);
    case DType::u16: return widen_tokens<uint16_t>(bytes, first, out);
    case DType::u32: return widen_tokens<uint32_t>(bytes, first, out);
    case DType::i16: return widen_tokens<int16_t>(bytes, first, out);
    case DType::i32: return widen_tokens<int32_t>(bytes, first, out);
    case DType::i64: return widen_tokens<int64_t>(bytes, first, out);
    default: invariant(false, "tokens of dtype ", dtype);
  }
}

}  // namespace

TokenFile::TokenFile(std::string name, TokenLayout layout, std::span<const std::byte> bytes,
                     const TokenFileOptions& options)
    : name_(std::move(name)), layout_(std::move(layout)), options_(options) {
  tokens_ = bytes.subspan(static_cast<size_t>(layout_.first_byte),
                          static_cast<size_t>(storage_bytes(layout_.dtype, layout_.token_count)));
  if (!layout_.shard) return;
  const ShardLayout parts = shard_layout(*layout_.shard);
  const auto documents_offset = static_cast<size_t>(parts.documents_offset);
  const auto sums_offset = static_cast<size_t>(parts.block_table_offset);
  starts_ = bytes.subspan(documents_offset, sums_offset - documents_offset);
  block_sums_ = bytes.subspan(sums_offset);
  checked_ = std::vector<std::atomic<uint64_t>>(static_cast<size_t>(parts.blocks + 63) / 64);
}

std::shared_ptr<const TokenFile> TokenFile::open(const std::filesystem::path& path,
                                                 const TokenFileOptions& options) {
  auto mapped = std::make_unique<MappedFile>(path);
  TokenLayout layout = find_tokens(mapped->bytes(), mapped->name(), options.raw_dtype);
  if (static_cast<int64_t>(mapped->bytes().size()) > options.resident_limit.value()) {
    mapped->forget();  // the tables were read once, from end to end
    mapped->expect_jumps();
  }
  std::shared_ptr<TokenFile> file(
      new TokenFile(mapped->name(), std::move(layout), mapped->bytes(), options));
  file->file_ = std::move(mapped);
  return file;
}

std::shared_ptr<const TokenFile> TokenFile::from_memory(TokensInMemory tokens) {
  for (int32_t token : tokens.tokens) {
    check(token >= 0 && (tokens.vocab_size == 0 || token < tokens.vocab_size), tokens.name,
          ": token ", token, " is outside the vocabulary of ", tokens.vocab_size);
  }
  const auto count = static_cast<int64_t>(tokens.tokens.size());
  int64_t before = -1;
  for (uint64_t start : tokens.document_starts) {
    const auto position = static_cast<int64_t>(start);
    check(position > before && position < count, tokens.name,
          ": document starts must ascend below ", count, ", and ", start, " does not");
    before = position;
  }
  const TokenLayout layout{.format = TokenFormat::raw, .dtype = DType::i32, .token_count = count};
  const auto bytes = std::as_bytes(std::span(tokens.tokens));
  std::shared_ptr<TokenFile> file(new TokenFile(tokens.name, layout, bytes, {}));
  file->memory_ = std::move(tokens);  // moving a vector leaves its elements where they are
  file->starts_ = std::as_bytes(std::span(file->memory_.document_starts));
  return file;
}

void TokenFile::check_range(int64_t first, int64_t count) const {
  check(first >= 0 && count >= 0 && first <= token_count() && count <= token_count() - first, name_,
        ": ", count, " tokens from ", first, " on were asked for; there are ", token_count());
}

void TokenFile::read(int64_t first, std::span<int64_t> tokens) const {
  const auto count = static_cast<int64_t>(tokens.size());
  check_range(first, count);
  if (count == 0) return;
  const int64_t item_bytes = bit_size(layout_.dtype) / 8;
  const int64_t first_block = first * item_bytes / kShardBlockBytes;
  const int64_t last_block = ((first + count) * item_bytes - 1) / kShardBlockBytes;
  check_blocks(first_block, last_block);
  widen(layout_.dtype, tokens_, first, tokens);
  count_touched((last_block - first_block + 1) * kShardBlockBytes);
}

void TokenFile::check_blocks(int64_t first_block, int64_t last_block) const {
  if (checked_.empty()) return;  // only our own format has checksums
  for (int64_t block = first_block; block <= last_block; ++block) {
    std::atomic<uint64_t>& word = checked_[static_cast<size_t>(block / 64)];
    const uint64_t bit = uint64_t{1} << (block % 64);
    if ((word.load(std::memory_order_relaxed) & bit) != 0) continue;
    check_block(block);
    word.fetch_or(bit, std::memory_order_relaxed);
  }
}

void TokenFile::check_block(int64_t block) const {
  const auto offset = static_cast<size_t>(block * kShardBlockBytes);
  const size_t bytes = std::min<size_t>(kShardBlockBytes, tokens_.size() - offset);
  const uint32_t found = crc32c(tokens_.subspan(offset, bytes));
  const auto expected = load_le<uint32_t>(block_sums_, static_cast<size_t>(block) * 4);
  if (found == expected) return;
  const int64_t item_bytes = bit_size(layout_.dtype) / 8;
  fail(name_, ": damaged: tokens ", static_cast<int64_t>(offset) / item_bytes, " to ",
       static_cast<int64_t>(offset + bytes) / item_bytes, " (block ", block, ") have ",
       crc32c_text(found), ", the file says ", crc32c_text(expected),
       "; make it again with `brrr data prepare`");
}

void TokenFile::count_touched(int64_t bytes) const {
  if (!is_large()) return;
  const int64_t touched = touched_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (touched <= options_.resident_limit.value()) return;
  touched_bytes_.store(0, std::memory_order_relaxed);
  file_->forget();
}

void TokenFile::will_need(int64_t first, int64_t count) const {
  check_range(first, count);
  // What fits the limit stays mapped after its first reading; asking again would be a system call each.
  if (!is_large() || count == 0) return;
  // Whole blocks, since a checksum reads them whole.
  const int64_t item_bytes = bit_size(layout_.dtype) / 8;
  const int64_t start = first * item_bytes / kShardBlockBytes * kShardBlockBytes;
  const int64_t end = std::min(
      ((first + count) * item_bytes + kShardBlockBytes - 1) / kShardBlockBytes * kShardBlockBytes,
      static_cast<int64_t>(tokens_.size()));
  file_->will_need(static_cast<size_t>(layout_.first_byte + start),
                   static_cast<size_t>(end - start));
}

bool TokenFile::is_large() const {
  return file_ && static_cast<int64_t>(tokens_.size()) > options_.resident_limit.value();
}

void TokenFile::verify() const {
  if (checked_.empty()) return;  // only our own format has checksums
  const int64_t item_bytes = bit_size(layout_.dtype) / 8;
  const int64_t step = (4_MiB).value() / item_bytes;  // asked for at once
  for (int64_t first = 0; first < token_count(); first += step) {
    const int64_t count = std::min(step, token_count() - first);
    will_need(first, count);
    check_blocks(first * item_bytes / kShardBlockBytes,
                 ((first + count) * item_bytes - 1) / kShardBlockBytes);
    count_touched(count * item_bytes);
  }
}

// ---- documents ---------------------------------------------------------------------------------------
std::optional<int64_t> TokenFile::document_count() const {
  if (starts_.empty() && !layout_.shard) return {};
  return static_cast<int64_t>(starts_.size() / 8);
}

int64_t TokenFile::document_start(int64_t index) const {
  return static_cast<int64_t>(load_le<uint64_t>(starts_, static_cast<size_t>(index) * 8));
}

// How many documents start before `position`: a binary search in the file, where it lies.
int64_t TokenFile::documents_before(int64_t position) const {
  int64_t low = 0, high = static_cast<int64_t>(starts_.size() / 8);
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (document_start(middle) < position) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

int64_t TokenFile::next_document(int64_t position) const {
  const int64_t index = documents_before(position);
  return index < static_cast<int64_t>(starts_.size() / 8) ? document_start(index) : token_count();
}

int64_t TokenFile::document_of(int64_t position) const {
  const int64_t before = documents_before(position + 1);
  return before > 0 ? document_start(before - 1) : 0;
}

void TokenFile::number_documents(int64_t first, std::span<const int64_t> tokens,
                                 std::span<int64_t> numbers) const {
  const auto count = static_cast<int64_t>(numbers.size());
  invariant(tokens.size() == numbers.size(), "one number for each token");
  check_range(first, count);
  int64_t number = 0;
  if (document_count()) {
    int64_t next = next_document(first + 1);
    for (int64_t i = 0; i < count; ++i) {
      if (first + i == next) {
        ++number;
        next = next_document(next + 1);
      }
      numbers[static_cast<size_t>(i)] = number;
    }
    return;
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0 && options_.document_token && tokens[i] == *options_.document_token) ++number;
    numbers[i] = number;
  }
}

}  // namespace brrr
