// On a GPU a product does to its result, on the way to memory, what else would be a kernel that reads it
// again: ops/matmul/epilogue.h in place of a product and its neighbours. Each pass takes what its name says, where
// dtypes, sizes and layouts are those that the matrix library takes, and, on a machine with the GPU, where the
// library says that it has an algorithm for it; everything else stays as it is.
#pragma once

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/target.h"

namespace brrr::compiler {

// Sizes for which the library is faster with an epilogue than a kernel of its own behind it, on an H200 (bench/NOTES.md).
struct EpilogueOptions {
  // Elements of a product. The step of a character model (6 layers of 384, 12 x 256 tokens) takes 1.56 ms with GELU in
  // its products and 1.42 ms without; that of GPT-2 124M (64 x 1024) gains 2.3 ms.
  int64_t fewest_gelus = int64_t{1} << 25;
  // Columns of which multiples are slow with GELU: the gradient of [32768, 4096] runs at 320 TFLOP/s, that of [65536, 3072]
  // at 515, and GPT-2 350M (32 x 1024) takes 163.7 ms with the epilogues and 156.3 ms without.
  int64_t slow_gelu_columns = 4096;
  // Bytes of dY. With sums products of weights run at 465 to 645 TFLOP/s instead of 630 to 734 (GPT-2 124M: 4.8 ms a step
  // for the 1.9 ms of the sums), and small ones gain nothing either: none by default.
  int64_t most_summed_bytes = 0;
};

// gelu_tanh behind the product that makes its operand; its gradient behind the product that makes the
// gradient of its result, with the column sums of what comes out where these have its dtype. In 16 bits and
// tf32: f32 computes tanh to its last bits.
Graph take_gelu_epilogues(const Graph& graph, const Target& target,
                          const EpilogueOptions& options = {});

// Column sums of dY (the gradient of a bias) with the product dY^T X that reads it (that of the weight).
Graph take_sum_epilogues(const Graph& graph, const Target& target,
                         const EpilogueOptions& options = {});

// A product added to a value that is there before it: a residual stream, or a gradient that micro-batches
// add to. The product is then not rounded by itself. The same behind the gradient of a norm, for the gradient
// that goes around it; there both are rounded as they are apart, and the bits stay.
Graph take_add_epilogues(const Graph& graph, const Target& target,
                         const EpilogueOptions& options = {});

}  // namespace brrr::compiler
