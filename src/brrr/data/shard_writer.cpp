#include "brrr/data/shard_writer.h"

#include <algorithm>
#include <array>

#include "brrr/base/error.h"
#include "brrr/io/atomic_file.h"
#include "brrr/io/crc32c.h"

namespace brrr {

// The shard being written: its file, and what its tables will say.
struct ShardWriter::Shard {
  explicit Shard(const std::filesystem::path& path) : file(path) {}

  AtomicFile file;
  ShardHeader header;
  std::vector<uint64_t> starts;
  std::vector<uint32_t> block_sums;
  uint32_t open_sum = 0;  // of the block that is not full yet
  int64_t open_bytes = 0;

  void write_tokens(std::span<const std::byte> bytes) {
    file.write(bytes);
    while (!bytes.empty()) {
      const auto taken = std::min(bytes.size(), static_cast<size_t>(kShardBlockBytes - open_bytes));
      open_sum = crc32c(bytes.first(taken), open_sum);
      open_bytes += static_cast<int64_t>(taken);
      bytes = bytes.subspan(taken);
      if (open_bytes == kShardBlockBytes) close_block();
    }
  }
  void close_block() {
    block_sums.push_back(open_sum);
    open_sum = 0;
    open_bytes = 0;
  }
};

ShardWriter::ShardWriter(ShardWriterOptions options) : options_(std::move(options)) {
  check(options_.vocab_size > 0, "shards: a vocabulary of ", options_.vocab_size, " tokens");
  check(options_.vocab_size <= int64_t{1} << 31, "shards: a vocabulary of ", options_.vocab_size,
        " tokens; ids have 31 bits");
  check(options_.end_of_text < options_.vocab_size, "shards: end-of-text token ",
        options_.end_of_text, " is outside the vocabulary of ", options_.vocab_size);
  check(options_.tokenizer_hash.size() <= kMaxTokenizerHash, "shards: a tokenizer hash of ",
        options_.tokenizer_hash.size(), " characters; at most ", kMaxTokenizerHash, " are kept");
  const int64_t token_bytes = options_.vocab_size <= 65536 ? 2 : 4;
  tokens_per_shard_ = options_.shard_bytes.value() / token_bytes;
  check(tokens_per_shard_ > 0, "shards: a shard of ", options_.shard_bytes, " holds no token");
  std::filesystem::create_directories(options_.folder);
}

ShardWriter::~ShardWriter() = default;

void ShardWriter::start_shard() {
  const auto index = static_cast<int64_t>(written_.paths.size());
  written_.paths.push_back(options_.folder / shard_file_name(options_.split, index));
  shard_ = std::make_unique<Shard>(written_.paths.back());
  shard_->header = {.dtype = options_.vocab_size <= 65536 ? DType::u16 : DType::u32,
                    .shard_index = index,
                    .vocab_size = options_.vocab_size,
                    .end_of_text = options_.end_of_text,
                    .tokenizer_hash = options_.tokenizer_hash};
  shard_->file.write(ShardHeaderBytes{});  // its place; the counts are known at the end
}

void ShardWriter::end_shard(bool is_last) {
  Shard& shard = *shard_;
  if (shard.open_bytes > 0) shard.close_block();
  shard.header.is_last = is_last;
  shard.header.document_count = static_cast<int64_t>(shard.starts.size());
  const auto starts = std::as_bytes(std::span(shard.starts));
  const auto sums = std::as_bytes(std::span(shard.block_sums));
  shard.header.documents_checksum = crc32c(starts);
  shard.header.block_table_checksum = crc32c(sums);

  const ShardLayout layout = shard_layout(shard.header);
  constexpr std::array<std::byte, 8> kZeros{};
  shard.file.write(
      std::span(kZeros).first(static_cast<size_t>(layout.documents_offset - shard.file.size())));
  shard.file.write(starts);
  shard.file.write(sums);
  invariant(shard.file.size() == layout.file_bytes, "a shard is not as long as its header says");
  shard.file.write_at(0, encode_shard_header(shard.header));
  shard.file.commit();
  shard_.reset();
}

void ShardWriter::append_some(std::span<const int32_t> tokens) {
  for (int32_t token : tokens) {
    check(token >= 0 && token < options_.vocab_size, "shards: token ", token,
          " is outside the vocabulary of ", options_.vocab_size);
  }
  if (shard_->header.dtype == DType::u32) {
    shard_->write_tokens(std::as_bytes(tokens));
  } else {
    const std::vector<uint16_t> narrow(tokens.begin(), tokens.end());
    shard_->write_tokens(std::as_bytes(std::span(narrow)));
  }
  shard_->header.token_count += static_cast<int64_t>(tokens.size());
  written_.token_count += static_cast<int64_t>(tokens.size());
}

void ShardWriter::append(std::span<const int32_t> tokens) {
  while (!tokens.empty()) {
    // A full shard is closed when there is more to come, since only the last one may say so.
    if (shard_ && shard_->header.token_count == tokens_per_shard_) end_shard(false);
    if (!shard_) start_shard();
    const int64_t room = tokens_per_shard_ - shard_->header.token_count;
    const auto taken = std::min(tokens.size(), static_cast<size_t>(room));
    append_some(tokens.first(taken));
    tokens = tokens.subspan(taken);
  }
}

void ShardWriter::begin_document() {
  if (shard_ && shard_->header.token_count == tokens_per_shard_) end_shard(false);
  if (!shard_) start_shard();
  const auto start = static_cast<uint64_t>(shard_->header.token_count);
  // A document without tokens leaves no trace: the next one starts where it did.
  if (shard_->starts.empty() || shard_->starts.back() < start) {
    shard_->starts.push_back(start);
    ++written_.document_count;
  }
  if (options_.end_of_text >= 0) {
    const std::array<int32_t, 1> separator = {static_cast<int32_t>(options_.end_of_text)};
    append(separator);
  }
}

ShardsWritten ShardWriter::finish() {
  check(written_.token_count > 0, "shards: nothing was written for ", options_.split,
        ": the texts hold no token");
  if (!shard_->starts.empty() &&
      static_cast<int64_t>(shard_->starts.back()) == shard_->header.token_count) {
    shard_->starts.pop_back();  // begun, and nothing came
    --written_.document_count;
  }
  end_shard(true);
  return written_;
}

}  // namespace brrr
