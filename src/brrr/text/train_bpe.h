// Learns the merges of a byte-level BPE tokenizer from text.
//   auto tokenizer = text::make_tokenizer(text::train_bpe_on_files({"book.txt"}, {.vocab_size = 8192}));
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/text/definition.h"
#include "brrr/text/splitter.h"
#include "brrr/text/stream.h"

namespace brrr::text {

struct BpeTraining {
  int64_t vocab_size =
      8192;  // 256 bytes, merges, special tokens; fewer where the text has no more pairs
  std::string pattern{kGpt2Pattern};
  // Each gets an id behind all others. Where its text stands in the training text, a document ends.
  std::vector<std::string> specials{std::string(kEndOfText)};
  int64_t min_count = 2;  // a pair that is rarer is not merged
};

// Every text is a document; no word reaches from one into the next.
TokenizerDefinition train_bpe(std::span<const std::string_view> documents,
                              const BpeTraining& training = {});
// Files may be larger than memory: they are read in parts, and only their distinct words are kept.
TokenizerDefinition train_bpe_on_files(std::span<const std::string> paths,
                                       const BpeTraining& training = {},
                                       const StreamOptions& options = {});

}  // namespace brrr::text
