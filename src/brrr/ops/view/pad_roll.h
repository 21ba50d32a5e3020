// Elements moved to other places of a new tensor: a border around them, another direction, another
// start. Strides are never negative, so `flip` copies.
#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

// x with `before[a]` elements in front of it and `after[a]` behind it on each axis a, all `value`.
Tensor pad(const Tensor& x, const Axes& before, const Axes& after, double value = 0);
// The order of elements reversed along every axis named.
Tensor flip(const Tensor& x, const Axes& axes);
// Element i moves to i + shifts[k] along axes[k]; what leaves at one end enters at the other.
Tensor roll(const Tensor& x, const Axes& shifts, const Axes& axes);

}  // namespace brrr
