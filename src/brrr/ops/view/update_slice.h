// A slice at a place that a tensor names: lengths are data, so one program serves all of them.
#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

// A new tensor: x with `source` in the place of elements [position, position + n) along `axis`, where
// n is the source's size there; its other sizes are those of x. The position is an i64 tensor of one
// element, [] or [1], or [x.dim(0)]: one for each row, where `axis` is not the first. A source that would
// stick out of x is an Error.
Tensor update_slice(const Tensor& x, int64_t axis, const Tensor& source, const Tensor& position);

}  // namespace brrr
