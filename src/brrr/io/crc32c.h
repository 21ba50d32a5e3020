// CRC-32C (Castagnoli; RFC 3720, appendix B.4): finds damage of stored bytes, not malice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace brrr {

// Of `bytes` after others whose checksum was `before`: crc32c(b, crc32c(a)) is that of a followed by b.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

// "crc32c 00c0ffee", for messages.
std::string crc32c_text(uint32_t checksum);

}  // namespace brrr
