// Integer arithmetic that wraps instead of being undefined.
#pragma once

#include <concepts>
#include <cstdint>

namespace brrr {

template <typename T>
constexpr T add_wrapping(T a, T b) {
  if constexpr (std::integral<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

template <typename T>
constexpr T sub_wrapping(T a, T b) {
  if constexpr (std::integral<T>)
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  else
    return a - b;
}

template <typename T>
constexpr T mul_wrapping(T a, T b) {
  if constexpr (std::integral<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

}  // namespace brrr
