// Positions in the vectors of a graph, one type for each vector, so that they cannot be mixed up.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace brrr {

template <typename Tag>
struct StrongId {
  int32_t value = -1;

  constexpr StrongId() = default;
  constexpr explicit StrongId(size_t position) : value(static_cast<int32_t>(position)) {}
  constexpr bool valid() const { return value >= 0; }
  constexpr size_t index() const { return static_cast<size_t>(value); }
  constexpr auto operator<=>(const StrongId&) const = default;
};

}  // namespace brrr
