// The loops that walk several operands together: axes of one element dropped, axes that every operand
// walks as one merged, broadcast operands standing still (stride 0).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

inline constexpr int kMaxNestOperands = kMaxTileInputs + 1;

struct LoopNest {
  int rank = 0;
  int operands = 0;
  std::array<int64_t, kMaxRank> sizes;
  std::array<std::array<int64_t, kMaxRank>, kMaxNestOperands> strides;  // [operand][axis]

  int64_t inner_size() const { return rank == 0 ? 1 : sizes[static_cast<size_t>(rank - 1)]; }
  // True when operand `o` is walked in storage order without gaps: position = offset + flat index.
  bool is_flat(int o) const;
  // True when operand `o` never moves.
  bool is_constant(int o) const;
};

// Every operand must broadcast to `shape`.
LoopNest make_nest(const Shape& shape, std::span<const Layout* const> operands);

// Calls visit(position, run, stride) for the elements [begin, begin + count) of the flat index space
// as operand `o` sees them: runs of elements along the innermost axis.
template <typename Visit>
void for_each_run(const LoopNest& nest, int o, int64_t begin, int64_t count, Visit&& visit) {
  if (count == 0) return;  // also: an axis of size 0 has no index to start from
  const auto& strides = nest.strides[static_cast<size_t>(o)];
  std::array<int64_t, kMaxRank> index{};
  int64_t position = 0, rest = begin;
  for (int axis = nest.rank - 1; axis >= 0; --axis) {
    const auto a = static_cast<size_t>(axis);
    index[a] = rest % nest.sizes[a];
    rest /= nest.sizes[a];
    position += index[a] * strides[a];
  }
  const int last = nest.rank - 1;
  const int64_t inner_stride = last < 0 ? 0 : strides[static_cast<size_t>(last)];
  while (count > 0) {
    const int64_t left_in_row = last < 0 ? 1 : nest.inner_size() - index[static_cast<size_t>(last)];
    const int64_t run = std::min(count, left_in_row);
    visit(position, run, inner_stride);
    count -= run;
    if (last < 0 || count == 0) break;
    position += run * inner_stride;
    index[static_cast<size_t>(last)] += run;
    for (int axis = last; axis > 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      if (index[a] < nest.sizes[a]) break;
      position += strides[a - 1] - index[a] * strides[a];
      index[a] = 0;
      ++index[a - 1];
    }
  }
}

}  // namespace brrr::kernels
