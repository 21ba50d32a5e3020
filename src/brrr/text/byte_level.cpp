#include "brrr/text/byte_level.h"

#include <vector>

#include "brrr/text/utf8.h"

namespace brrr::text {
namespace {

constexpr int kCodes = 256 + 68;  // 68 bytes are not printable

struct Tables {
  std::array<std::string, 256> character;  // of a byte
  std::array<int, kCodes> byte;            // of a code; -1 for none
  std::array<uint8_t, 256> order;

  Tables() {
    byte.fill(-1);
    int next = 256;
    for (int value = 0; value < 256; ++value) {
      const bool printable = (value >= '!' && value <= '~') || (value >= 0xA1 && value != 0xAD);
      byte[static_cast<size_t>(printable ? value : next++)] = value;
    }
    size_t rank = 0;
    for (size_t code = 0; code < byte.size(); ++code) {
      if (byte[code] < 0) continue;
      order[rank++] = static_cast<uint8_t>(byte[code]);
      character[static_cast<size_t>(byte[code])] = encode_utf8(static_cast<uint32_t>(code));
    }
  }
};

const Tables& tables() {
  static const Tables instance;
  return instance;
}

}  // namespace

std::string to_byte_level(std::string_view bytes) {
  std::string text;
  for (char byte : bytes) text += tables().character[static_cast<unsigned char>(byte)];
  return text;
}

std::optional<std::string> from_byte_level(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Utf8Char next = decode_utf8(text);
    if (next.state != Utf8Char::State::whole || next.code >= kCodes) return std::nullopt;
    const int byte = tables().byte[next.code];
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    text.remove_prefix(next.length);
  }
  return bytes;
}

const std::array<uint8_t, 256>& byte_level_order() { return tables().order; }

}  // namespace brrr::text
