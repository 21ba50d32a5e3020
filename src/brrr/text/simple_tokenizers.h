// Tokenizers without merges: bytes and characters. Made by make_tokenizer.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/text/token_index.h"
#include "brrr/text/tokenizer.h"

namespace brrr::text {

class ByteTokenizer final : public Tokenizer {
 public:
  explicit ByteTokenizer(TokenizerDefinition definition);

 private:
  size_t append_ids(std::string_view text, TextEnd end, std::vector<int32_t>& ids) const override;
  size_t find_cut(std::string_view text, size_t from) const override;

  std::array<int32_t, 256> byte_ids_{};
};

class CharTokenizer final : public Tokenizer {
 public:
  explicit CharTokenizer(TokenizerDefinition definition);

 private:
  size_t append_ids(std::string_view text, TextEnd end, std::vector<int32_t>& ids) const override;
  size_t find_cut(std::string_view text, size_t from) const override;
  void append_bytes(std::string_view character, std::vector<int32_t>& ids) const;

  TokenIndex index_;
  std::array<int32_t, 256> byte_ids_{};
};

}  // namespace brrr::text
