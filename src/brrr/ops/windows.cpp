#include "brrr/ops/windows.h"

#include "brrr/ops/pad_roll.h"
#include "brrr/ops/views.h"

namespace brrr {
namespace {

// Windows over one axis; their elements, `dilation` apart, become the last axis.
Tensor windows_along(const Tensor& x, int64_t axis, int64_t kernel, int64_t stride,
                     int64_t dilation) {
  const Tensor dense = unfold(x, axis, (kernel - 1) * dilation + 1, stride);
  return dilation == 1 ? dense : slice(dense, -1, {.step = dilation});
}

}  // namespace

int64_t window_count(int64_t size, const WindowRule& rule, int axis, std::string_view op) {
  constexpr int64_t kLargest = INT32_MAX;  // products of two stay countable
  const auto is_size = [](int64_t value) { return value >= 1 && value <= kLargest; };
  check(is_size(rule.kernel) && is_size(rule.stride) && is_size(rule.dilation), op, ": kernel ",
        rule.kernel, ", stride ", rule.stride, " and dilation ", rule.dilation, " on axis ", axis,
        " must be in [1, ", kLargest, "]");
  check(rule.padding >= 0 && rule.padding <= kLargest && size <= INT64_MAX / 4, op, ": padding ",
        rule.padding, " on axis ", axis, " of size ", size, " must be in [0, ", kLargest, "]");
  const int64_t span = (rule.kernel - 1) * rule.dilation + 1, padded = size + 2 * rule.padding;
  check(span <= padded, op, ": a kernel of ", rule.kernel, " elements, ", rule.dilation,
        " apart, spans ", span, " and axis ", axis, " has ", size, " with padding ", rule.padding,
        " on both sides; use a smaller kernel or more padding");
  return (padded - span) / rule.stride + 1;
}

Tensor pad_image(const Tensor& x, const Axes& padding) {
  if (padding == Axes{0, 0}) return x;
  Axes widths(x.rank(), 0);
  widths[x.rank() - 2] = padding[0];
  widths[x.rank() - 1] = padding[1];
  return pad(x, widths, widths);
}

Tensor windows_of(const Tensor& x, const Axes& kernel, const Axes& stride, const Axes& dilation) {
  const int rows = x.rank() - 2, cols = x.rank() - 1;
  const Tensor bands = windows_along(x, rows, kernel[0], stride[0], dilation[0]);
  return windows_along(bands, cols, kernel[1], stride[1], dilation[1]);
}

}  // namespace brrr
