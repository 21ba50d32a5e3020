// One character of UTF-8 at a time, for text that may be anything: truncated, overlong, binary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace brrr::text {

// What stands at the beginning of some bytes. `length` counts its bytes.
struct Utf8Char {
  enum class State : uint8_t {
    whole,      // a character, `code`
    truncated,  // all bytes there are begin a character that needs more of them
    broken,     // the first byte belongs to no character; length 1
  };
  State state = State::broken;
  uint8_t length = 1;
  uint32_t code = 0;
};

// The character at the beginning of `bytes`, which is not empty. As Unicode has it: no overlong forms,
// no surrogates, nothing above U+10FFFF.
Utf8Char decode_utf8(std::string_view bytes);

// `code` is a Unicode scalar value.
std::string encode_utf8(uint32_t code);

bool is_utf8(std::string_view bytes);

}  // namespace brrr::text
