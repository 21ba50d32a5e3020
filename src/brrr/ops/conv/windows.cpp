#include "brrr/ops/conv/windows.h"

#include <algorithm>

#include "brrr/ops/view/pad_roll.h"
#include "brrr/ops/view/views.h"

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
  for (int64_t padding : {rule.before, rule.after}) {
    check(padding >= 0 && padding <= kLargest && size <= INT64_MAX / 4, op, ": padding ", padding,
          " on axis ", axis, " of size ", size, " must be in [0, ", kLargest, "]");
  }
  const int64_t span = (rule.kernel - 1) * rule.dilation + 1,
                padded = size + rule.before + rule.after;
  const bool even = rule.before == rule.after;
  check(span <= padded, op, ": a kernel of ", rule.kernel, " elements, ", rule.dilation,
        " apart, spans ", span, " and axis ", axis, " has ", size, " with padding ", rule.before,
        even ? "" : join_text(" before it and ", rule.after, " after it"),
        even ? " on both sides" : "", "; use a smaller kernel or more padding");
  const int64_t left_over = (padded - span) % rule.stride,
                whole = (padded - span) / rule.stride + 1;
  if (!rule.partial || left_over == 0) return whole;
  // PyTorch's rule: a window that begins in the padding after the axis would see no element.
  return whole * rule.stride < size + rule.before ? whole + 1 : whole;
}

Padding1 automatic_padding(AutoPad automatic, int64_t size, const WindowRule& rule) {
  const int64_t span = (rule.kernel - 1) * rule.dilation + 1;
  const int64_t stride = std::max<int64_t>(1, rule.stride);  // one of 0 is refused later
  const int64_t windows = (size + stride - 1) / stride;
  const int64_t total = std::max<int64_t>(0, (windows - 1) * stride + span - size);
  const int64_t less = total / 2, more = total - less;
  return automatic == AutoPad::same_upper ? Padding1(less, more) : Padding1(more, less);
}

Axes padding_list(const Axes& before, const Axes& after) {
  Axes padding = before;
  if (after != before) {
    for (int64_t width : after) padding.push_back(width);
  }
  return padding;
}

Tensor pad_image(const Tensor& x, const Axes& padding) {
  if (padding == Axes{0, 0}) return x;
  Axes before(x.rank(), 0), after(x.rank(), 0);
  for (int i = 0; i < 2; ++i) {
    before[x.rank() - 2 + i] = padding_before(padding, i);
    after[x.rank() - 2 + i] = padding_after(padding, i, 2);
  }
  return pad(x, before, after);
}

Tensor windows_of(const Tensor& x, const Axes& kernel, const Axes& stride, const Axes& dilation) {
  const int rows = x.rank() - 2, cols = x.rank() - 1;
  const Tensor bands = windows_along(x, rows, kernel[0], stride[0], dilation[0]);
  return windows_along(bands, cols, kernel[1], stride[1], dilation[1]);
}

}  // namespace brrr
