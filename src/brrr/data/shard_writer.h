// Writes tokens as a row of shards (data/shard_format.h), each of them atomically.
//
//   ShardWriter writer({.folder = "corpus", .split = "train", .vocab_size = 50257, ...});
//   for (...) { writer.begin_document(); writer.append(tokens); }
//   writer.finish();
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "brrr/base/units.h"
#include "brrr/data/shard_format.h"

namespace brrr {

struct ShardWriterOptions {
  std::filesystem::path folder;
  std::string split = "train";
  int64_t vocab_size = 0;  // up to 65536 tokens are stored as u16, else as u32
  int64_t end_of_text = -1;
  std::string tokenizer_hash;
  Bytes shard_bytes = 256_MiB;  // of tokens
};

struct ShardsWritten {
  std::vector<std::filesystem::path> paths;
  int64_t token_count = 0, document_count = 0;
};

class ShardWriter {
 public:
  explicit ShardWriter(ShardWriterOptions options);
  ~ShardWriter();

  // A document that begins with the end-of-text token, where there is one: it closes the document before
  // and opens this one, so the same token is what a model predicts last and is prompted with first.
  void begin_document();
  void append(std::span<const int32_t> tokens);
  // The last shard is committed here; without it, the row of shards is refused as unfinished.
  ShardsWritten finish();

 private:
  struct Shard;
  void start_shard();
  void end_shard(bool is_last);
  void append_some(std::span<const int32_t> tokens);

  ShardWriterOptions options_;
  int64_t tokens_per_shard_ = 0;
  std::unique_ptr<Shard> shard_;
  ShardsWritten written_;
};

}  // namespace brrr
