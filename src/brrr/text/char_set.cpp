#include "brrr/text/char_set.h"

#include "brrr/text/utf8.h"

namespace brrr::text {
namespace {

constexpr uint32_t kCodes = 0x110000;

}  // namespace

CharSet::CharSet() : codes_(kCodes) {}

size_t CharSet::add_part(std::string_view text, TextEnd end) {
  size_t place = 0;
  while (place < text.size()) {
    const Utf8Char next = decode_utf8(text.substr(place));
    if (next.state == Utf8Char::State::whole) {
      codes_[next.code] = true;
      place += next.length;
      continue;
    }
    if (next.state == Utf8Char::State::truncated && end == TextEnd::later) break;
    broken_bytes_[static_cast<unsigned char>(text[place])] = true;
    ++place;
  }
  return place;
}

TokenizerDefinition CharSet::define(UnknownCharacters unknown,
                                    std::span<const std::string> specials) const {
  TokenizerDefinition definition{.kind = TokenizerKind::characters};
  for (uint32_t code = 0; code < kCodes; ++code) {
    if (codes_[code]) definition.tokens.push_back(encode_utf8(code));
  }
  for (size_t byte = 0; byte < broken_bytes_.size(); ++byte) {
    const bool is_character = byte < 0x80 && codes_[byte];
    const bool wanted = unknown == UnknownCharacters::as_bytes || broken_bytes_[byte];
    if (wanted && !is_character) definition.tokens.emplace_back(1, static_cast<char>(byte));
  }
  for (const std::string& special : specials) add_special(definition, special);
  return definition;
}

TokenizerDefinition define_char_tokenizer(std::string_view text, UnknownCharacters unknown,
                                          std::span<const std::string> specials) {
  CharSet characters;
  characters.add_part(text, TextEnd::here);
  return characters.define(unknown, specials);
}

}  // namespace brrr::text
