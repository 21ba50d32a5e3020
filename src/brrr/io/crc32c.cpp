#include "brrr/io/crc32c.h"

#include <fmt/format.h>

#include <array>

#include "brrr/io/little_endian.h"

namespace brrr {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed

// Eight bytes a step ("slicing by 8", Kounavis and Berry 2005): table k holds the checksum of a byte
// followed by k zero bytes, so the eight lookups of a step do not wait for each other.
using Tables = std::array<std::array<uint32_t, 256>, 8>;
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = rest;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t rest = tables[k - 1][byte];
      tables[k][byte] = (rest >> 8) ^ tables[0][rest & 0xFF];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t rest = ~before;
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    const uint64_t eight = load_le<uint64_t>(bytes, at) ^ rest;
    rest = 0;
    for (size_t k = 0; k < 8; ++k) rest ^= kTables[7 - k][(eight >> (8 * k)) & 0xFF];
  }
  for (; at < bytes.size(); ++at)
    rest = (rest >> 8) ^ kTables[0][(rest ^ static_cast<uint32_t>(bytes[at])) & 0xFF];
  return ~rest;
}

std::string crc32c_text(uint32_t checksum) { return fmt::format("crc32c {:08x}", checksum); }

}  // namespace brrr
