// Convolutions as in PyTorch: cross-correlations of [batch, channels, ...] images with a weight
// [out, channels / groups, ...]. Output channel o sees the channels of its group only.
#pragma once

#include "brrr/ops/conv/windows.h"
#include "brrr/tensor/tensor.h"

namespace brrr {

// Padding is zeros: .padding = 1, or more on one side (Padding1 and Padding2 of ops/conv/windows.h), or
// .padding = AutoPad::same_upper.
struct Conv1dOptions {
  int64_t stride = 1;
  Padding1 padding = 0;
  int64_t dilation = 1, groups = 1;
};
struct Conv2dOptions {
  Size2 stride = 1;
  Padding2 padding = 0;
  Size2 dilation = 1;
  int64_t groups = 1;
};

// x [n, c, length], weight [out, c / groups, kernel], bias [out] or undefined -> [n, out, windows].
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv1dOptions& options = {});
// x [n, c, h, w], weight [out, c / groups, kh, kw], bias [out] or undefined -> [n, out, rows, cols].
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv2dOptions& options = {});

}  // namespace brrr
