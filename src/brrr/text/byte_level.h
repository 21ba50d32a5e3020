// GPT-2's way to write any bytes as visible text: every byte stands for one character. Those that are
// printable in Latin-1 stand for themselves, the others, in order, for U+0100 and following ("Ġ" is a
// space). vocab.json, merges.txt and tokenizer.json are written so.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace brrr::text {

std::string to_byte_level(std::string_view bytes);

// Nothing when a character stands for no byte, or when the text is not UTF-8.
std::optional<std::string> from_byte_level(std::string_view text);

// The 256 bytes in the order of their characters: the order of GPT-2's first ids.
const std::array<uint8_t, 256>& byte_level_order();

}  // namespace brrr::text
