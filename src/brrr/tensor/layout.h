// How the elements of a tensor lie in its storage: element (i0, i1, ...) is at
//   offset + i0 * strides[0] + i1 * strides[1] + ...        (all in elements, not bytes)
// Views are other layouts of the same storage; the functions below make them and cost nothing.
// Strides may be zero (broadcast), never negative.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "brrr/base/inline_vector.h"

namespace brrr {

inline constexpr int kMaxRank = 8;
using Shape = InlineVector<int64_t, kMaxRank>;
using Strides = InlineVector<int64_t, kMaxRank>;
using Axes = InlineVector<int64_t, kMaxRank>;

[[noreturn]] void fail_size(const Shape& shape);

// The number of elements; throws Error for negative sizes and where the product overflows.
inline int64_t numel(const Shape& shape) {
  int64_t count = 1;
  bool bad = false, any_zero = false;
  for (int64_t size : shape) {
    // Sizes of zero count as one: empty tensors have strides too, and those must not overflow.
    bad |= size < 0 || __builtin_mul_overflow(count, size + (size == 0 ? 1 : 0), &count);
    any_zero |= size == 0;
  }
  if (bad) [[unlikely]]
    fail_size(shape);
  return any_zero ? 0 : count;
}

struct Layout {
  Shape shape;
  Strides strides;
  int64_t offset = 0;

  int rank() const { return shape.size(); }
  bool is_contiguous() const;  // row-major without gaps, from any offset
  bool operator==(const Layout&) const = default;
};

Layout contiguous_layout(const Shape& shape);

// Half-open [start, stop) in steps of `step` > 0; negative bounds count from the end, and bounds past
// the end are clamped as in Python.
struct Slice {
  int64_t start = 0;
  int64_t stop = INT64_MAX;
  int64_t step = 1;
};

// `axis` in [-rank, rank) as a number in [0, rank); `op` names the caller in the error.
int normalize_axis(int64_t axis, int rank, std::string_view op);

// What two shapes broadcast to, aligned at their last axes; sizes must be equal or 1.
Shape broadcast_shapes(const Shape& a, const Shape& b, std::string_view op);

Layout permute_layout(const Layout& layout, std::span<const int64_t> axes);
Layout transpose_layout(const Layout& layout, int64_t axis_a, int64_t axis_b);
Layout slice_layout(const Layout& layout, int64_t axis, Slice slice);
Layout select_layout(const Layout& layout, int64_t axis, int64_t index);
Layout expand_layout(const Layout& layout, const Shape& shape);
Layout squeeze_layout(const Layout& layout, int64_t axis);
Layout unsqueeze_layout(const Layout& layout, int64_t axis);
// Sliding windows over `axis`: the axis becomes their number, a new last axis holds `size` elements.
Layout unfold_layout(const Layout& layout, int64_t axis, int64_t size, int64_t step);
// The same elements in the same order under another shape, or nothing where that needs a copy.
std::optional<Layout> try_view_layout(const Layout& layout, const Shape& shape);
// Fills in a single -1 and checks that the number of elements stays the same.
Shape resolve_shape(const Shape& from, const Shape& to, std::string_view op);

}  // namespace brrr
