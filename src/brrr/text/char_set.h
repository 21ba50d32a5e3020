// The characters of some text, from which a char tokenizer is made. Text may come in parts.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "brrr/text/tokenizer.h"

namespace brrr::text {

class CharSet {
 public:
  CharSet();
  // Returns how many bytes it took: all but the beginning of a character whose end follows.
  size_t add_part(std::string_view text, TextEnd end);
  // Characters in the order of Unicode, then bytes, then special tokens; see define_char_tokenizer.
  TokenizerDefinition define(UnknownCharacters unknown,
                             std::span<const std::string> specials) const;

 private:
  std::vector<bool> codes_;               // characters seen
  std::array<bool, 256> broken_bytes_{};  // bytes seen that belong to no character
};

}  // namespace brrr::text
