// Numbers in files: little endian, at any alignment. Whoever calls has checked the bounds.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace brrr {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

template <typename T>
T load_le(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <typename T>
void store_le(std::span<std::byte> bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

}  // namespace brrr
