// The ways back from views that show part of their input (place_slice) or some of it several times
// (fold, by its OpDef).
#pragma once

#include "brrr/ops/view/views.h"

namespace brrr {

// Zeros of `shape` with dy in a slice of one axis: the gradient of slice and of select.
Tensor place_slice(const Tensor& dy, const Shape& shape, int64_t axis, Slice range);

}  // namespace brrr
