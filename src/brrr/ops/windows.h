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

// How windows lie along one axis.
struct WindowRule {
  int64_t kernel, stride = 1, padding = 0, dilation = 1;
};
// How many windows an axis of `size` elements has; throws Error where not even one fits.
int64_t window_count(int64_t size, const WindowRule& rule, int axis, std::string_view op);

// `padding` elements of 0 around the last two axes; x itself where there is none.
Tensor pad_image(const Tensor& x, const Axes& padding);
// [..., h, w] -> [..., rows, cols, kernel_h, kernel_w], a view.
Tensor windows_of(const Tensor& x, const Axes& kernel, const Axes& stride, const Axes& dilation);

}  // namespace brrr
