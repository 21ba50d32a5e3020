// Integer arithmetic that wraps instead of being undefined, and the sign of numbers that may have none.
#pragma once

#include <concepts>
#include <cstdint>

#include "brrr/base/host_device.h"

namespace brrr {

template <typename T>
constexpr BRRR_HD T add_wrapping(T a, T b) {
  if constexpr (std::integral<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

template <typename T>
constexpr BRRR_HD T sub_wrapping(T a, T b) {
  if constexpr (std::integral<T>)
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  else
    return a - b;
}

template <typename T>
constexpr BRRR_HD T mul_wrapping(T a, T b) {
  if constexpr (std::integral<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

template <typename T>
[[gnu::always_inline]] constexpr BRRR_HD bool is_negative(T x) {
  if constexpr (std::unsigned_integral<T>)
    return false;
  else
    return x < T(0);
}

}  // namespace brrr
