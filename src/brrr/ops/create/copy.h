// Ops that copy elements: to another dtype, another device, or a fresh contiguous place.
#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

Tensor cast(const Tensor& x, DType dtype);  // x itself when it has that dtype already
Tensor contiguous(const Tensor& x);         // x itself when it is contiguous already
Tensor clone(const Tensor& x);              // always a copy
Tensor to(const Tensor& x, Device device);  // x itself when it lives there already

}  // namespace brrr
