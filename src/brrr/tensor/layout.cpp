#include "brrr/tensor/layout.h"

#include <algorithm>

namespace brrr {

void fail_size(const Shape& shape) {
  for (int64_t size : shape) check(size >= 0, "shape ", shape, " has a negative size");
  fail("shape ", shape, " has more elements than a 64-bit number can count; use smaller sizes");
}

bool Layout::is_contiguous() const {
  int64_t expected = 1;
  bool contiguous = true;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    if (shape[axis] == 0) return true;  // nothing to lie anywhere
    if (shape[axis] == 1) continue;     // the stride of a single element is never used
    contiguous &= strides[axis] == expected;
    expected *= shape[axis];
  }
  return contiguous;
}

Layout contiguous_layout(const Shape& shape) {
  Layout layout{.shape = shape, .strides = Strides(shape.size(), 1)};
  for (int axis = shape.size() - 2; axis >= 0; --axis) {
    // max with 1 keeps strides of empty tensors meaningful, as PyTorch does.
    layout.strides[axis] = layout.strides[axis + 1] * std::max<int64_t>(shape[axis + 1], 1);
  }
  return layout;
}

int normalize_axis(int64_t axis, int rank, std::string_view op) {
  check(axis >= -rank && axis < rank, op, ": axis ", axis, " is out of range for a tensor of rank ",
        rank, rank == 0 ? "; a scalar has no axes" : "");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Shape broadcast_shapes(const Shape& a, const Shape& b, std::string_view op) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const int shift = longer.size() - shorter.size();
  for (int axis = 0; axis < shorter.size(); ++axis) {
    const int64_t x = longer[axis + shift], y = shorter[axis];
    check(x == y || x == 1 || y == 1, op, ": shapes ", a, " and ", b, " do not broadcast: sizes ",
          x, " and ", y, " at axis ", axis + shift - longer.size(), " differ and neither is 1");
    result[axis + shift] = x == 1 ? y : x;
  }
  return result;
}

Layout permute_layout(const Layout& layout, std::span<const int64_t> axes) {
  check(static_cast<int>(axes.size()) == layout.rank(), "permute: ", axes.size(),
        " axes given for shape ", layout.shape, "; name each of its ", layout.rank(), " axes once");
  Layout result{.shape = {}, .strides = {}, .offset = layout.offset};
  unsigned seen = 0;
  for (int64_t given : axes) {
    const int axis = normalize_axis(given, layout.rank(), "permute");
    check((seen >> axis & 1U) == 0, "permute: axis ", given, " is named twice");
    seen |= 1U << axis;
    result.shape.push_back(layout.shape[axis]);
    result.strides.push_back(layout.strides[axis]);
  }
  return result;
}

Layout transpose_layout(const Layout& layout, int64_t axis_a, int64_t axis_b) {
  const int a = normalize_axis(axis_a, layout.rank(), "transpose");
  const int b = normalize_axis(axis_b, layout.rank(), "transpose");
  Layout result = layout;
  std::swap(result.shape[a], result.shape[b]);
  std::swap(result.strides[a], result.strides[b]);
  return result;
}

Layout slice_layout(const Layout& layout, int64_t axis, Slice slice) {
  const int a = normalize_axis(axis, layout.rank(), "slice");
  const int64_t size = layout.shape[a];
  check(slice.step > 0, "slice: step ", slice.step,
        " must be positive; flip the tensor to walk backwards");
  const auto from_start = [size](int64_t bound) {
    return std::clamp<int64_t>(bound < 0 ? bound + size : bound, 0, size);
  };
  const int64_t start = from_start(slice.start), stop = std::max(start, from_start(slice.stop));
  Layout result = layout;
  // Written without `+ step - 1`, which would overflow for a huge step.
  result.shape[a] = stop == start ? 0 : (stop - start - 1) / slice.step + 1;
  result.offset += start * layout.strides[a];
  // A slice of at most one element never takes the step, and its stride must not overflow.
  if (result.shape[a] > 1) result.strides[a] = layout.strides[a] * slice.step;
  return result;
}

Layout select_layout(const Layout& layout, int64_t axis, int64_t index) {
  const int a = normalize_axis(axis, layout.rank(), "select");
  const int64_t size = layout.shape[a];
  check(index >= -size && index < size, "select: index ", index, " is out of range for axis ", axis,
        " of size ", size, " in shape ", layout.shape);
  Layout result = layout;
  result.offset += (index < 0 ? index + size : index) * layout.strides[a];
  result.shape.erase(a);
  result.strides.erase(a);
  return result;
}

Layout expand_layout(const Layout& layout, const Shape& shape) {
  const int shift = shape.size() - layout.rank();
  check(shift >= 0, "expand: shape ", shape, " has fewer axes than ", layout.shape);
  Layout result{.shape = shape, .strides = Strides(shape.size(), 0), .offset = layout.offset};
  for (int axis = 0; axis < layout.rank(); ++axis) {
    const int64_t from = layout.shape[axis];
    int64_t& to = result.shape[axis + shift];
    if (to == -1) to = from;
    check(from == to || from == 1, "expand: size ", from, " cannot grow to ", to, " (",
          layout.shape, " to ", shape, "); only sizes of 1 expand");
    if (from == to) result.strides[axis + shift] = layout.strides[axis];
  }
  numel(result.shape);  // refuses negative sizes and overflow
  return result;
}

Layout squeeze_layout(const Layout& layout, int64_t axis) {
  const int a = normalize_axis(axis, layout.rank(), "squeeze");
  check(layout.shape[a] == 1, "squeeze: axis ", axis, " of shape ", layout.shape, " has size ",
        layout.shape[a], ", not 1; select one element of it instead");
  Layout result = layout;
  result.shape.erase(a);
  result.strides.erase(a);
  return result;
}

Layout unsqueeze_layout(const Layout& layout, int64_t axis) {
  const int a = normalize_axis(axis, layout.rank() + 1, "unsqueeze");
  Layout result = layout;
  result.strides.insert(a, a < layout.rank() ? layout.shape[a] * layout.strides[a] : 1);
  result.shape.insert(a, 1);
  return result;
}

Layout unfold_layout(const Layout& layout, int64_t axis, int64_t size, int64_t step) {
  const int a = normalize_axis(axis, layout.rank(), "unfold");
  check(size >= 0 && size <= layout.shape[a], "unfold: windows of ", size, " do not fit axis ",
        axis, " of size ", layout.shape[a], " in shape ", layout.shape);
  check(step > 0, "unfold: step ", step, " must be positive");
  Layout result = layout;
  result.shape[a] = (layout.shape[a] - size) / step + 1;
  if (result.shape[a] > 1) result.strides[a] = layout.strides[a] * step;
  result.shape.push_back(size);
  result.strides.push_back(layout.strides[a]);
  return result;
}

namespace {

struct Run {
  int64_t size, stride;
};

// Merges neighbouring axes that are walked as one: the outer stride is the inner size x stride.
InlineVector<Run, kMaxRank> merge_axes(const Layout& layout) {
  InlineVector<Run, kMaxRank> runs;
  for (int axis = 0; axis < layout.rank(); ++axis) {
    const int64_t size = layout.shape[axis], stride = layout.strides[axis];
    if (size == 1) continue;
    if (!runs.empty() && runs.back().stride == size * stride) {
      runs.back() = {runs.back().size * size, stride};
    } else {
      runs.push_back({size, stride});
    }
  }
  return runs;
}

}  // namespace

std::optional<Layout> try_view_layout(const Layout& layout, const Shape& shape) {
  if (layout.is_contiguous()) {
    Layout result = contiguous_layout(shape);
    result.offset = layout.offset;
    return result;
  }
  // Each run must be cut into whole new axes, innermost first.
  Layout result{.shape = shape, .strides = Strides(shape.size(), 1), .offset = layout.offset};
  auto runs = merge_axes(layout);
  for (int axis = shape.size() - 1; axis >= 0; --axis) {
    if (shape[axis] == 1) continue;
    if (runs.empty() || runs.back().size % shape[axis] != 0) return std::nullopt;
    Run& run = runs.back();
    result.strides[axis] = run.stride;
    run = {run.size / shape[axis], run.stride * shape[axis]};
    if (run.size == 1) runs.pop_back();
  }
  return result;
}

Shape resolve_shape(const Shape& from, const Shape& to, std::string_view op) {
  Shape result = to;
  int unknown = -1;
  int64_t known = 1;
  for (int axis = 0; axis < to.size(); ++axis) {
    if (to[axis] == -1) {
      check(unknown < 0, op, ": shape ", to, " has more than one -1");
      unknown = axis;
      result[axis] = 1;
    }
  }
  known = numel(result);
  const int64_t count = numel(from);
  if (unknown >= 0) {
    check(known > 0 && count % known == 0, op, ": ", count, " elements of shape ", from,
          " cannot be divided into ", to);
    result[unknown] = count / known;
  }
  check(numel(result) == count, op, ": shape ", from, " has ", count, " elements and ", to, " has ",
        numel(result), "; they must be the same number");
  return result;
}

}  // namespace brrr
