// A file of tokens, mapped into memory: any format, any size, bounded resident memory.
// Safe to read from several threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "brrr/base/units.h"
#include "brrr/data/token_layout.h"
#include "brrr/io/mapped_file.h"

namespace brrr {

struct TokenFileOptions {
  std::optional<DType> raw_dtype = {};  // read as raw integers of this dtype
  // For formats that do not say where documents start: the token that begins one (50256 in files of
  // llm.c and nanoGPT). Without it such a file is one document.
  std::optional<int64_t> document_token = {};
  // A mapping that has been touched in more places than this is taken out of the process and mapped
  // anew as it is read on.
  Bytes resident_limit = 256_MiB;
};

// Tokens that are in memory already, such as the embedded stories.
struct TokensInMemory {
  std::string name;
  std::vector<int32_t> tokens;
  std::vector<uint64_t> document_starts;  // ascending positions; may be empty
  int64_t vocab_size = 0;
};

class TokenFile {
 public:
  static std::shared_ptr<const TokenFile> open(const std::filesystem::path& path,
                                               const TokenFileOptions& options = {});
  static std::shared_ptr<const TokenFile> from_memory(TokensInMemory tokens);

  const std::string& name() const { return name_; }
  const TokenLayout& layout() const { return layout_; }
  int64_t token_count() const { return layout_.token_count; }
  // Documents that start in this file; nothing when the format does not say.
  std::optional<int64_t> document_count() const;
  // The first position at or after `position` where a document starts; the end when there is none.
  int64_t next_document(int64_t position) const;
  // Where the document that holds `position` starts; 0 when none starts at or before it.
  int64_t document_of(int64_t position) const;

  // Copies the tokens from `first` on. Checks the checksums of blocks not seen before.
  void read(int64_t first, std::span<int64_t> tokens) const;
  // Numbers the documents along the same tokens: 0 for that of the first token, then 1, ...
  void number_documents(int64_t first, std::span<const int64_t> tokens,
                        std::span<int64_t> numbers) const;
  // Asks the system for tokens that will be read soon; matters only for files that are not in memory.
  void will_need(int64_t first, int64_t count) const;
  // Reads everything and checks every checksum. Throws Error naming the first damaged block.
  void verify() const;

 private:
  TokenFile(std::string name, TokenLayout layout, std::span<const std::byte> bytes,
            const TokenFileOptions& options);

  int64_t document_start(int64_t index) const;
  int64_t documents_before(int64_t position) const;
  void check_range(int64_t first, int64_t count) const;
  void check_blocks(int64_t first_block, int64_t last_block) const;
  void check_block(int64_t block) const;
  void count_touched(int64_t bytes) const;
  bool is_large() const;  // a mapped file of more than the limit

  std::string name_;
  TokenLayout layout_;
  TokenFileOptions options_;
  std::unique_ptr<MappedFile> file_;
  TokensInMemory memory_;
  std::span<const std::byte> tokens_, starts_, block_sums_;
  // One bit a block: its checksum was found right. Two threads may both check a block; both find the same.
  mutable std::vector<std::atomic<uint64_t>> checked_;
  mutable std::atomic<int64_t> touched_bytes_{0};
};

}  // namespace brrr
