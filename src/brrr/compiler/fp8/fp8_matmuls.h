// On a GPU tensor cores multiply 8-bit factors that both lie along k, and the matrix library multiplies their
// product by the inverse scales before it is rounded. The precision pass writes what fp8 means: quantised values,
// products in f32, multiplications behind them. This pass puts the ops of ops/matmul/fp8.h in their place:
//
//   cast(x * scale), max |x|                     one pass over x; with the transpose where a product wants it
//   cast((a @ b) * (1/sa * 1/sb) + bias)         one product
//
// In training dX = dY W wants W transposed, and dW = dY^T X both of its factors. The values are the same, apart from
// the order of sums, and a bias that is rounded to bf16. Where sizes are no multiples of 16, or a factor is no quantised
// value, the program stays as it was.
#pragma once

#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {

Graph take_fp8_products(const Graph& graph);

}  // namespace brrr::compiler
