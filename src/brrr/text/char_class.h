// What a character is to the patterns that cut text into words: letter, number, space or other.
// Non-ASCII characters are classed by PCRE2 itself (\p{L}, \p{N}, \s under UCP), once, at first use, so
// that hand-written scanners and patterns cannot disagree.
#pragma once

#include <array>
#include <cstdint>

namespace brrr::text {

enum class CharClass : uint8_t {
  other,
  letter,
  number,
  space,
  newline,    // \r or \n: space too, but cl100k's pattern tells them apart
  multibyte,  // in kByteClass only: the byte does not say
};

inline constexpr std::array<CharClass, 256> kByteClass = [] {
  std::array<CharClass, 256> classes{};  // other
  for (int byte = 0x80; byte < 0x100; ++byte) classes[byte] = CharClass::multibyte;
  for (int byte = 'a'; byte <= 'z'; ++byte) classes[byte] = classes[byte - 32] = CharClass::letter;
  for (int byte = '0'; byte <= '9'; ++byte) classes[byte] = CharClass::number;
  for (char byte : {' ', '\t', '\v', '\f'}) classes[byte] = CharClass::space;
  for (char byte : {'\r', '\n'}) classes[byte] = CharClass::newline;
  return classes;
}();

// `code` is a Unicode scalar value.
CharClass class_of(uint32_t code);

}  // namespace brrr::text
