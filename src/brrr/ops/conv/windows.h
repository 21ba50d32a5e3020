// Windows that slide over the last two axes: what convolutions and pools share.
#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

// A number for rows and one for columns: 3 is {3, 3}.
struct Size2 {
  int64_t height, width;
  Size2(int64_t both) : height(both), width(both) {}  // NOLINT: a square is a number
  Size2(int64_t height, int64_t width) : height(height), width(width) {}
};
inline Axes axes_of(Size2 size) { return {size.height, size.width}; }

// Padding that gives ceil(size / stride) windows; an odd element goes to the end (upper) or to the
// beginning (lower), as ONNX names it.
enum class AutoPad : uint8_t { none, same_upper, same_lower };

// Elements around one axis: 1 is {1, 1}.
struct Padding1 {
  int64_t before = 0, after = 0;
  AutoPad automatic = AutoPad::none;
  Padding1(int64_t both) : before(both), after(both) {}  // NOLINT: the usual case is a number
  Padding1(int64_t before, int64_t after) : before(before), after(after) {}
  Padding1(AutoPad automatic) : automatic(automatic) {}  // NOLINT
};
// Elements around an image: 1 on every side, {rows, columns} on both sides of each axis,
// {top, left, bottom, right} in the order of ONNX's pads, or AutoPad::same_upper.
struct Padding2 {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  AutoPad automatic = AutoPad::none;
  Padding2(int64_t all) : Padding2(all, all) {}                // NOLINT
  Padding2(Size2 both) : Padding2(both.height, both.width) {}  // NOLINT
  Padding2(int64_t rows, int64_t columns) : Padding2(rows, columns, rows, columns) {}
  Padding2(int64_t top, int64_t left, int64_t bottom, int64_t right)
      : top(top), left(left), bottom(bottom), right(right) {}
  Padding2(AutoPad automatic) : automatic(automatic) {}  // NOLINT
};

// How windows lie along one axis.
struct WindowRule {
  int64_t kernel, stride = 1, before = 0, after = 0, dilation = 1;
  bool partial =
      false;  // a last window that ends past the padding counts, if it begins in front of it
};
// How many windows an axis of `size` elements has; throws Error where not even one fits.
int64_t window_count(int64_t size, const WindowRule& rule, int axis, std::string_view op);
// What `automatic` pads on an axis of `size` elements.
Padding1 automatic_padding(AutoPad automatic, int64_t size, const WindowRule& rule);

// The attribute "padding": what is before each axis, then, where it differs, what is after each.
Axes padding_list(const Axes& before, const Axes& after);
inline int64_t padding_before(const Axes& padding, int axis) { return padding[axis]; }
inline int64_t padding_after(const Axes& padding, int axis, int axes) {
  return padding[padding.size() > axes ? axes + axis : axis];
}

// Zeros around the last two axes; x itself where there is no padding.
Tensor pad_image(const Tensor& x, const Axes& padding);
// [..., h, w] -> [..., rows, cols, kernel_h, kernel_w], a view.
Tensor windows_of(const Tensor& x, const Axes& kernel, const Axes& stride, const Axes& dilation);

}  // namespace brrr
