// Triangles of matrices: the last two axes are rows and columns, axes before them are batches.
#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

// Keeps the elements with col <= row + diagonal; the others become 0.
Tensor tril(const Tensor& x, int64_t diagonal = 0);
// Keeps the elements with col >= row + diagonal; the others become 0.
Tensor triu(const Tensor& x, int64_t diagonal = 0);

}  // namespace brrr
