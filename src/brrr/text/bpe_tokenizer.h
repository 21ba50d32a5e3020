// Byte-level BPE: text is cut into words by a pattern, and the bytes of each word are merged. Made by
// make_tokenizer.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "brrr/text/merger.h"
#include "brrr/text/splitter.h"
#include "brrr/text/token_index.h"
#include "brrr/text/tokenizer.h"
#include "brrr/text/word_cache.h"

namespace brrr::text {

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(TokenizerDefinition definition);

 private:
  size_t append_ids(std::string_view text, TextEnd end, std::vector<int32_t>& ids) const override;
  size_t find_cut(std::string_view text, size_t from) const override;
  std::vector<int32_t> ids_of_word(std::string_view word) const;

  std::unique_ptr<Splitter> splitter_;
  TokenIndex index_;
  Merger merger_;
  mutable WordCachePool caches_;
};

}  // namespace brrr::text
