// Products of every element of one vector with every element of another.
#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

// y[i, j] = a[i] * b[j]. dtypes promote.
Tensor outer(const Tensor& a, const Tensor& b);

}  // namespace brrr
