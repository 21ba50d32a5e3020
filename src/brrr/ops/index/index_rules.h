// What ops that take an index with the rank of x ask of their operands.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr {

// Indices are i64 or i32.
void require_index_dtype(const InferCall& call, int operand);
// x and index: same rank; off the attribute "axis" an index may not be larger than x.
void require_index_fits(const InferCall& call, const Shape& x, const Shape& index);
// The type of x after something was put at the places that an index names: inputs x, index, source.
TensorTypes infer_scatter(const InferCall& call);

// Samples of scatter_add and scatter: x, an index with repeated places, a source.
std::vector<Sample> scatter_samples();

}  // namespace brrr
