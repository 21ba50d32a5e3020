#include "brrr/kernels/calls/kernel_layouts.h"

namespace brrr::kernels {

Layout axis_last(const Layout& layout, int axis) {
  Axes order;
  for (int a = 0; a < layout.rank(); ++a) {
    if (a != axis) order.push_back(a);
  }
  order.push_back(axis);
  return permute_layout(layout, order);
}

Layout pick_axes(const Layout& layout, const Axes& axes, bool reduced) {
  Layout picked;
  for (int axis = 0; axis < layout.rank(); ++axis) {
    if (axes.contains(axis) != reduced) continue;
    picked.shape.push_back(layout.shape[axis]);
    picked.strides.push_back(layout.strides[axis]);
  }
  return picked;
}

Layout flipped_layout(const Layout& layout, const Attrs& attrs) {
  Layout backwards = layout;
  for (int64_t given : attrs.list("axes")) {
    const int axis = normalize_axis(given, backwards.rank(), "flip");
    backwards.offset += (backwards.shape[axis] - 1) * backwards.strides[axis];
    backwards.strides[axis] = -backwards.strides[axis];
  }
  return backwards;
}

}  // namespace brrr::kernels
