// Pools over windows of the last two axes of [channels, h, w] or [batch, channels, h, w].
#pragma once

#include "brrr/ops/windows.h"
#include "brrr/tensor/tensor.h"

namespace brrr {

struct Pool2dOptions {
  Size2 kernel = 2;
  Size2 stride = 0;   // 0: as the kernel, windows side by side
  Size2 padding = 0;  // on both sides, at most half of the kernel
};

// The largest element of every window; NaN is the largest. Padding never wins. The gradient goes to
// the first of equals.
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options);
// The mean of every window; padding counts, as zeros.
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options);

}  // namespace brrr
