// Conversion of one element between any two storage types. Every kernel converts through here, so
// each conversion has one meaning: floats round to nearest even (once), fp8 saturates, floats become
// integers by truncation and saturate (NaN becomes 0), integers wrap, anything but zero is true.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

#include "brrr/base/float_formats.h"

namespace brrr {

template <typename T>
inline constexpr bool kIsSmallFloat =
    !std::integral<T> && !std::same_as<T, float> && !std::same_as<T, double>;

template <std::integral To, std::floating_point From>
constexpr To truncate_saturated(From value) {
  // The bounds as floats: the lower one is a power of two and exact; the upper one may round up to
  // 2^n, which is out of range itself, hence >=.
  constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
  constexpr From high = static_cast<From>(std::numeric_limits<To>::max());
  const bool too_high = value >= high, too_low = value <= low, is_nan = value != value;
  const To inside = static_cast<To>(too_high || too_low || is_nan ? From(0) : value);
  return too_high  ? std::numeric_limits<To>::max()
         : too_low ? std::numeric_limits<To>::min()
                   : inside;
}

template <typename To, typename From>
constexpr To convert_element(From value) {
  if constexpr (std::same_as<To, From>) {
    return value;
  } else if constexpr (kIsSmallFloat<From>) {
    return convert_element<To>(value.to_float());
  } else if constexpr (std::same_as<To, bool>) {
    return value != From(0);
  } else if constexpr (kIsSmallFloat<To> && std::integral<From>) {
    return To(static_cast<double>(value));
  } else if constexpr (std::integral<To> && std::floating_point<From>) {
    return truncate_saturated<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace brrr
