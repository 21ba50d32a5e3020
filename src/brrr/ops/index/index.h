// Reading, adding and writing at places that a tensor names. Indices are i64 or i32; one that is negative or
// too large is an Error, found before anything is written.
#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

// y[i, j, k] = x[i, index[i, j, k], k]   (for axis 1; the index names the place along `axis`)
// The result has the index's shape; along the other axes the index may be smaller than x.
Tensor gather(const Tensor& x, int64_t axis, const Tensor& index);

// A copy y of x, then y[i, index[i, j, k], k] += source[i, j, k]   (for axis 1).
// Repeated places add up in the order of the index, low-precision floats in f32, rounded once.
Tensor scatter_add(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source);

// A copy y of x, then y[i, index[i, j, k], k] = source[i, j, k]   (for axis 1).
// Where a place is named more than once, the last element of the index along `axis` wins; the others
// have no gradient.
Tensor scatter(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source);

// Rows of a table [rows, dim] for ids of any shape: ids.shape + [dim].
Tensor embedding(const Tensor& table, const Tensor& ids);

}  // namespace brrr
