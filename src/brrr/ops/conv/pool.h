// Pools over windows of the last two axes of [channels, h, w] or [batch, channels, h, w].
#pragma once

#include "brrr/ops/conv/windows.h"
#include "brrr/tensor/tensor.h"

namespace brrr {

struct Pool2dOptions {
  Size2 kernel = 2;
  Size2 stride = 0;  // 0: as the kernel, windows side by side
  Padding2 padding =
      0;  // less than the kernel on each side, at most half of it on both (ops/conv/windows.h)
  // Also the windows that end past the padding, of which only the part inside is seen. One that would begin
  // after the last element is left out.
  bool ceil_mode = false;
  bool count_include_pad = true;  // of the mean: padding counts, as zeros
};

// The largest element of every window; NaN is the largest. Padding never wins. The gradient goes to
// the first of equals.
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options);
// The mean of every window. What ceil_mode lets a window reach past the padding never counts.
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options);

}  // namespace brrr
