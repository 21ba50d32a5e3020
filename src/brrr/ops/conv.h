// Convolutions as in PyTorch: cross-correlations of [batch, channels, ...] images with a weight
// [out, channels / groups, ...]. Output channel o sees the channels of its group only.
#pragma once

#include "brrr/ops/windows.h"
#include "brrr/tensor/tensor.h"

namespace brrr {

struct Conv1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};
struct Conv2dOptions {
  Size2 stride = 1, padding = 0, dilation = 1;  // padding with zeros, on both sides
  int64_t groups = 1;
};

// x [n, c, length], weight [out, c / groups, kernel], bias [out] or undefined -> [n, out, windows].
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv1dOptions& options = {});
// x [n, c, h, w], weight [out, c / groups, kh, kw], bias [out] or undefined -> [n, out, rows, cols].
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv2dOptions& options = {});

}  // namespace brrr
