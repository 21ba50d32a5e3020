#include "brrr/text/utf8.h"

namespace brrr::text {
namespace {

constexpr bool is_within(unsigned char byte, unsigned char low, unsigned char high) {
  return byte >= low && byte <= high;
}

// The range of the second byte is what rules out overlong forms, surrogates and too large codes.
bool fits_second(unsigned char first, unsigned char second) {
  switch (first) {
    case 0xE0: return is_within(second, 0xA0, 0xBF);
    case 0xED: return is_within(second, 0x80, 0x9F);
    case 0xF0: return is_within(second, 0x90, 0xBF);
    case 0xF4: return is_within(second, 0x80, 0x8F);
    default: return is_within(second, 0x80, 0xBF);
  }
}

// Bytes of a character that begins with this one; 0 when none does.
int length_from(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
}

}  // namespace

Utf8Char decode_utf8(std::string_view bytes) {
  using enum Utf8Char::State;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const auto length = static_cast<size_t>(length_from(byte(0)));
  if (length == 0) return {broken, 1, 0};
  if (length == 1) return {whole, 1, byte(0)};
  uint32_t code = byte(0) & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {truncated, static_cast<uint8_t>(i), 0};
    if (i == 1 ? !fits_second(byte(0), byte(1)) : !is_within(byte(i), 0x80, 0xBF))
      return {broken, 1, 0};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  return {whole, static_cast<uint8_t>(length), code};
}

std::string encode_utf8(uint32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | code >> 18), tail(12), tail(6), tail(0)};
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Utf8Char next = decode_utf8(bytes);
    if (next.state != Utf8Char::State::whole) return false;
    bytes.remove_prefix(next.length);
  }
  return true;
}

}  // namespace brrr::text
