// What transformer families share: their blocks one after another, the caches of these, and the sizes of a block with
// rotary positions and a gated FFN.
#pragma once

#include <algorithm>
#include <memory>

#include "brrr/graph/trace.h"
#include "brrr/nn/model_family.h"

namespace brrr {

// Each block in a segment of its name, by which plans tell layers apart: prefix "h." makes "h.0", "h.1", ...
template <typename Block>
Tensor run_blocks(const std::vector<std::unique_ptr<Block>>& blocks, std::string_view prefix,
                  Tensor x, const ForwardInputs& inputs) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::string name = join_text(prefix, i);
    const graph::SegmentScope layer(name);
    x = (*blocks[i])(x, inputs.of_layer(i));
    note_activation(inputs, name, x);
  }
  return x;
}

template <typename Block>
DecodeCache cache_of(const std::vector<std::unique_ptr<Block>>& blocks, int64_t batch,
                     int64_t capacity) {
  DecodeCache cache{.capacity = capacity, .layers = {}};
  for (const auto& block : blocks) cache.layers.push_back(block->make_cache(batch, capacity));
  return cache;
}

// Of fields of the usual names; kv_heads and head_dim may be 0 for as many as heads and width / heads. Attention is
// grouped, with a bias or norm of none; the caller adds vectors, windows and experts.
template <typename Config>
ModelShape gated_decoder_shape(const Config& c) {
  ModelShape shape{
      .layers = c.layers,
      .width = c.width,
      .heads = c.heads,
      .kv_heads = c.kv_heads > 0 ? c.kv_heads : c.heads,
      .hidden = c.hidden,
      .vocab = c.vocab,
      .context = c.context,
      .head_dim = c.head_dim > 0 ? c.head_dim : c.width / std::max<int64_t>(1, c.heads),
      .rotary = true,
      .gated = true};
  set_grouped_attention(shape);
  shape.outside_vectors = static_cast<double>(c.width);
  return shape;
}

}  // namespace brrr
