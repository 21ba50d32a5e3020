// Other ways to look at the same elements. Views share storage and cost nothing; only `reshape`
// and `contiguous` copy, and only where they must.
#pragma once

#include <vector>

#include "brrr/tensor/tensor.h"

namespace brrr {

Tensor transpose(const Tensor& x, int64_t axis_a = -2, int64_t axis_b = -1);
Tensor permute(const Tensor& x, const Axes& axes);
Tensor slice(const Tensor& x, int64_t axis, Slice range);
Tensor select(const Tensor& x, int64_t axis, int64_t index);  // drops the axis
Tensor expand(const Tensor& x, const Shape& shape);           // sizes of 1 grow; -1 keeps a size
Tensor squeeze(const Tensor& x, int64_t axis);
Tensor unsqueeze(const Tensor& x, int64_t axis);
Tensor unfold(const Tensor& x, int64_t axis, int64_t size, int64_t step);
// Never copies: refused where the strides do not allow the shape. One size may be -1.
Tensor view(const Tensor& x, const Shape& shape);
// A view where the strides allow it, else a copy.
Tensor reshape(const Tensor& x, const Shape& shape);

// Cuts an axis into parts of `size` (the last may be smaller), or of the given sizes. Views.
std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t axis = 0);
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t axis = 0);

}  // namespace brrr
