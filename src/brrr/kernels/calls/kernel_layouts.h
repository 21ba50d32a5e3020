// Layouts in which kernels walk an operand, the same on CPU and GPU.
#pragma once

#include "brrr/graph/attrs.h"
#include "brrr/tensor/layout.h"

namespace brrr::kernels {

// Axis `axis` last, the others in order.
Layout axis_last(const Layout& layout, int axis);
// The axes in `axes` (reduced), or all others, from the start of the storage.
Layout pick_axes(const Layout& layout, const Axes& axes, bool reduced);
// Backwards along the attribute "axes". Only inside a kernel does a layout have negative strides.
Layout flipped_layout(const Layout& layout, const Attrs& attrs);

}  // namespace brrr::kernels
