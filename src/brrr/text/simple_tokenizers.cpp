#include "brrr/text/simple_tokenizers.h"

#include "brrr/base/error.h"
#include "brrr/text/byte_level.h"
#include "brrr/text/utf8.h"

namespace brrr::text {
namespace {

// A character, or a byte that is part of none.
std::string_view next_unit(std::string_view text) {
  const Utf8Char next = decode_utf8(text);
  return text.substr(0, next.state == Utf8Char::State::whole ? next.length : 1);
}

}  // namespace

ByteTokenizer::ByteTokenizer(TokenizerDefinition definition)
    : Tokenizer(std::move(definition)),
      byte_ids_(TokenIndex(this->definition().tokens).byte_ids()) {}

size_t ByteTokenizer::append_ids(std::string_view text, TextEnd /*end*/,
                                 std::vector<int32_t>& ids) const {
  size_t next = ids.size();
  ids.resize(next + text.size());
  for (char byte : text) ids[next++] = byte_ids_[static_cast<unsigned char>(byte)];
  return text.size();
}

size_t ByteTokenizer::find_cut(std::string_view /*text*/, size_t from) const { return from; }

CharTokenizer::CharTokenizer(TokenizerDefinition definition)
    : Tokenizer(std::move(definition)),
      index_(this->definition().tokens),
      byte_ids_(index_.byte_ids()) {}

size_t CharTokenizer::append_ids(std::string_view text, TextEnd end,
                                 std::vector<int32_t>& ids) const {
  size_t place = 0;
  while (place < text.size()) {
    const auto byte = static_cast<unsigned char>(text[place]);
    if (byte < 0x80 && byte_ids_[byte] != TokenIndex::kNone) {
      ids.push_back(byte_ids_[byte]);
      ++place;
      continue;
    }
    const std::string_view rest = text.substr(place);
    if (end == TextEnd::later && decode_utf8(rest).state == Utf8Char::State::truncated) break;
    const std::string_view unit = next_unit(rest);
    const int32_t id = index_.find(unit);
    if (id != TokenIndex::kNone) {
      ids.push_back(id);
    } else {
      append_bytes(unit, ids);
    }
    place += unit.size();
  }
  return place;
}

void CharTokenizer::append_bytes(std::string_view character, std::vector<int32_t>& ids) const {
  for (char byte : character) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(byte)];
    check(id != TokenIndex::kNone, "the character \"",
          is_utf8(character) ? std::string(character) : to_byte_level(character),
          "\" is not among the ", definition().tokens.size(),
          " of this char tokenizer; make it from text that has it, or with bytes for unknown "
          "characters");
    ids.push_back(id);
  }
}

// No character goes on over a byte that begins one.
size_t CharTokenizer::find_cut(std::string_view text, size_t from) const {
  while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
  return from;
}

TokenizerDefinition define_byte_tokenizer(std::span<const std::string> specials) {
  TokenizerDefinition definition{.kind = TokenizerKind::bytes};
  for (int byte = 0; byte < 256; ++byte) definition.tokens.emplace_back(1, static_cast<char>(byte));
  for (const std::string& special : specials) add_special(definition, special);
  return definition;
}

}  // namespace brrr::text
