// Whole slices picked, added and marked by ids. Ids are i64 or i32 and one axis; one that is negative
// or too large is an Error, found before anything is written.
#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

// y[i, j, k] = x[i, ids[j], k]   (for axis 1)
Tensor index_select(const Tensor& x, int64_t axis, const Tensor& ids);
// A copy y of x, then y[i, ids[j], k] += source[i, j, k]   (for axis 1). Repeated ids add up in their
// order, low-precision floats in f32, rounded once.
Tensor index_add(const Tensor& x, int64_t axis, const Tensor& ids, const Tensor& source);
// A new last axis of `classes` elements: 1 at the place of the id, 0 elsewhere. Ids have any shape.
Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype = DType::i64);

}  // namespace brrr
