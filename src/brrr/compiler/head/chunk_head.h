// A language model's logits are the largest value of its step: tokens times vocabulary. This pass cuts the rows
// of the head into chunks, and for each of them computes logits, losses, the gradient of logits and what is
// made of that, before the next one begins; so no more than one chunk of logits is ever in memory.
//
//   for each chunk of rows of x:  logits = x W^T,  losses,  dlogits,  dx = dlogits W,  dW += dlogits^T x
//
// Losses and dx keep their bits where a product has the same bits for any number of rows, as on the CPU; dW is
// summed in another order. Losses may be cut so only because nothing that comes back to dlogits depends on
// them: the gradient of a mean is a number. Graphs where it does stay as they are (compiler/head/head_rows.h).
#pragma once

#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {

struct ChunkHeadOptions {
  // Of logits in a chunk; smaller heads stay whole. Every chunk reads W twice, and reads and writes dW: for
  // 50304 classes of 768 numbers 0.4 GiB beside 1.9 TFLOP of products with 8192 rows (0.8 GiB in 16 bits), so
  // that these are still what the time goes into. Chunks of half the size would have twice as much traffic.
  int64_t chunk_bytes = int64_t{1} << 30;
  int64_t min_rows = 4096;     // so that dx, rows x width, still fills a large GPU
  int64_t row_multiple = 128;  // of a chunk: the tiles that products are cut into
};

// How many rows a chunk has; all where the head stays whole. Chunks of one size are preferred.
int64_t chunk_rows(int64_t rows, int64_t row_bytes, const ChunkHeadOptions& options);

Graph chunk_heads(const Graph& graph, const ChunkHeadOptions& options = {});

}  // namespace brrr::compiler
