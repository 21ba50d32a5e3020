// Text files become shards of tokens, for training and for validation, in one pass and bounded memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/base/units.h"
#include "brrr/data/shard_writer.h"

namespace brrr {

// What preparing needs of a tokenizer. `encode` is called from several threads.
struct TokenEncoder {
  std::function<std::vector<int32_t>(std::string_view text)> encode;
  int64_t vocab_size = 0;
  std::string hash;  // names the vocabulary; kept in every shard
  std::optional<int64_t> end_of_text = {};
};

struct PrepareOptions {
  std::filesystem::path folder;
  // Documents are whole files, or their parts between this text, which belongs to none of them.
  std::string separator = {};
  // The part of the documents that goes to the split "validation", chosen by seed and number. A file that
  // is one document gives its last part instead, cut at a line or a word. 0: no validation.
  double validation_part = 0.05;
  uint64_t seed = 0;
  Bytes shard_bytes = 256_MiB;
  bool replace = false;  // shards that stand in the folder already
};

struct Prepared {
  ShardsWritten train, validation;  // no paths where nothing was written
  Bytes text_bytes;
};

Prepared prepare_tokens(const std::vector<std::filesystem::path>& files,
                        const TokenEncoder& encoder, const PrepareOptions& options);

// The last place in `text` where it can be cut and both parts have, one after the other, the tokens of
// the whole under GPT-2's and cl100k's patterns: before a single space between two ASCII letters. Where
// there is none, after the last line, else at the end of the last whole UTF-8 character.
size_t find_cut(std::string_view text);

}  // namespace brrr
