// What a decoder keeps of the tokens that a model has seen, so that the next token costs the work of one.
// Capacity is fixed and lengths are data: one compiled program serves every length.
//
//   const DecodeCache cache = model.make_cache(batch, capacity);
//   auto step = compile([&](Tensor tokens, Tensor starts, Tensor counts) {
//     const DecodeInputs decode{&cache, starts, counts};
//     return model.hidden(tokens, {.decode = &decode});
//   });
#pragma once

#include <vector>

#include "brrr/tensor/tensor.h"

namespace brrr {

// Of one layer: keys and values [batch, kv_heads, capacity, dim], or what else it goes on from.
using LayerCache = std::vector<Tensor>;

struct DecodeCache {
  int64_t capacity = 0;  // tokens a row has room for
  std::vector<LayerCache> layers;

  void clear() const;  // as if no token had been seen
  Bytes bytes() const;
};

// One call for tokens [batch, n]: row b has seen starts[b] tokens, its next counts[b] <= n follow here, and
// those behind them are filling. Layers write all n places, so starts[b] + n must stay within the
// capacity; the next call begins where the filling did and writes over it.
struct DecodeInputs {
  const DecodeCache* cache = nullptr;
  Tensor starts, counts;  // i64 [batch]
};

// i64 [batch, n]: where the n tokens of each row stand.
Tensor decode_positions(const DecodeInputs& decode, int64_t n);

// Writes x [batch, heads, n, dim] behind what each row has seen; returns the cached tensor, now with it.
Tensor append_to_cache(const Tensor& cached, const Tensor& x, const DecodeInputs& decode);

}  // namespace brrr
