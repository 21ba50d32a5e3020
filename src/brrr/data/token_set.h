// All tokens of a corpus, or of a part of it: ranges of token files, in order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/data/token_file.h"

namespace brrr {

struct TokenRange {
  std::shared_ptr<const TokenFile> file;
  int64_t first = 0, count = 0;
};

struct TokenSet {
  std::string name;
  std::vector<TokenRange> ranges;
  int64_t token_count() const;
};

TokenSet whole_file(std::shared_ptr<const TokenFile> file);

// A file of any format, or the shards of one split ("train", "validation") in a folder that
// `brrr data prepare` made: all of them, from one tokenizer, the last one included.
TokenSet open_tokens(const std::filesystem::path& path, std::string_view split = "train",
                     const TokenFileOptions& options = {});
// The shards of a split in a folder, by number; empty when there are none.
std::vector<std::filesystem::path> find_shards(const std::filesystem::path& folder,
                                               std::string_view split);

// The front and the last part of the tokens, cut where a document starts when one starts in the last
// part. For one text without a validation text of its own.
struct TokenSplit {
  TokenSet front, tail;
};
TokenSplit split_tail(const TokenSet& tokens, double tail_part);

}  // namespace brrr
