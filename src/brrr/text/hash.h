// Two hashes: FNV-1a, whose value may be written to files, and a quick one for tables in memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace brrr::text {

// 64-bit FNV-1a: the same value on every machine and in every version.
class Fnv1a {
 public:
  void add(std::string_view bytes) {
    for (char byte : bytes) value_ = (value_ ^ static_cast<unsigned char>(byte)) * kPrime;
  }
  // Numbers go in as eight bytes, lowest first.
  void add_number(uint64_t number) {
    for (int i = 0; i < 8; ++i) value_ = (value_ ^ (number >> (8 * i) & 0xFF)) * kPrime;
  }
  // With its length, so that two texts cannot trade bytes.
  void add_text(std::string_view bytes) {
    add_number(bytes.size());
    add(bytes);
  }
  uint64_t value() const { return value_; }

 private:
  static constexpr uint64_t kPrime = 0x100000001B3;
  uint64_t value_ = 0xCBF29CE484222325;
};

// Spreads the bits of two numbers over one (the folded product of wyhash and its relatives).
inline uint64_t mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a ^ 0x9E3779B97F4A7C15) *
                       static_cast<unsigned __int128>(b ^ 0xD1B54A32D192ED03);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t quick_hash(std::string_view bytes) {
  uint64_t hash = bytes.size();
  while (bytes.size() >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    hash = mix(hash, word);
    bytes.remove_prefix(8);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, bytes.data(), bytes.size());
  return mix(hash, rest);
}

}  // namespace brrr::text
