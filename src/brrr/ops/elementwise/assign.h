// x += y and the like: the elements of x are written, seen through every view of them. As with
// copy_from, x keeps its shape and dtype, its version goes on, and the write is refused where it would
// cut a gradient. Inside compile() it is a write into a state.
#pragma once

#include "brrr/ops/elementwise/arg.h"

namespace brrr {

// Tensors are handles, so a const one may be written: `model.weight -= 0.1 * gradient`.
// y broadcasts to x. A float result is not written into integers: cast x, or round the result.
const Tensor& operator+=(const Tensor& x, const Arg& y);
const Tensor& operator-=(const Tensor& x, const Arg& y);
const Tensor& operator*=(const Tensor& x, const Arg& y);
const Tensor& operator/=(const Tensor& x, const Arg& y);

}  // namespace brrr
