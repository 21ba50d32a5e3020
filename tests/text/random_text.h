// Texts that are hard on tokenizers: all classes of characters, runs of blanks, contractions, broken UTF-8.
#pragma once

#include <array>
#include <random>
#include <string>

#include "brrr/text/utf8.h"

namespace brrr::text {

class RandomText {
 public:
  explicit RandomText(uint32_t seed) : engine_(seed) {}

  size_t below(size_t bound) { return engine_() % bound; }

  std::string bytes(size_t size) {
    std::string text(size, '\0');
    for (char& byte : text) byte = static_cast<char>(below(256));
    return text;
  }

  // Pieces of every kind that a pattern tells apart.
  std::string mixed(size_t pieces) {
    std::string text;
    for (size_t i = 0; i < pieces; ++i) text += piece();
    return text;
  }

  // As `mixed`, with bytes that are not UTF-8 here and there.
  std::string broken(size_t pieces) {
    std::string text;
    for (size_t i = 0; i < pieces; ++i) text += below(6) == 0 ? bytes(1 + below(3)) : piece();
    return text;
  }

 private:
  std::string piece() {
    static const std::array<std::string, 44> kPieces{
        " ",      " ",      "  ",     "   ",    "\n",     "\n\n", "\r\n",   "\t",     "\f\v",
        "\u00a0", "\u3000", "\u180e", "\u2028", "\u0085", "a",    "Bc",     "word",   "é",
        "ß",      "字",     "кот",    "Ǆ",      "1",      "22",   "333",    "4444",   "½",
        "٣",      "Ⅷ",      "!",      "?!",     "...",    "🦙", "\u200d", "\u0301", "'s",
        "'S",     "'ll",    "'Re",    "'ſ",     "'",      "''",   "<|",     "_"};
    if (below(8) == 0) return encode_utf8(any_code());
    return kPieces[below(kPieces.size())];
  }

  uint32_t any_code() {
    for (;;) {
      const auto code = static_cast<uint32_t>(below(below(2) == 0 ? 0x3000 : 0x110000));
      if (code < 0xD800 || code >= 0xE000) return code;
    }
  }

  std::mt19937 engine_;
};

}  // namespace brrr::text
