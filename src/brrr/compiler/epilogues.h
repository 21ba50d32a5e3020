// On a GPU a product does to its result, on the way to memory, what else would be a kernel that reads it
// again: ops/epilogue.h in place of a product and its neighbours. Each pass takes what its name says, where
// dtypes, sizes and layouts are those that the matrix library takes, and, on a machine with the GPU, where the
// library says that it has an algorithm for it; everything else stays as it is.
#pragma once

#include "brrr/graph/graph.h"

namespace brrr {

// gelu_tanh behind the product that makes its operand; its gradient behind the product that makes the
// gradient of its result, with the column sums of what comes out where these have its dtype. In 16 bits and
// tf32: f32 computes tanh to its last bits.
Graph take_gelu_epilogues(const Graph& graph, Device device);

// Column sums of dY (the gradient of a bias) with the product dY^T X that reads it (that of the weight), where dY is
// small.
Graph take_sum_epilogues(const Graph& graph, Device device);

// A product added to a value that is there before it: a residual stream, or a gradient that micro-batches
// add to. The product is then not rounded by itself. The same behind the gradient of a norm, for the gradient
// that goes around it; there both are rounded as they are apart, and the bits stay.
Graph take_add_epilogues(const Graph& graph, Device device);

}  // namespace brrr
