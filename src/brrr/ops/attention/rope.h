// Rotary position embedding: pairs of elements of a head are turned by an angle that grows with the
// position, so that a product of a query and a key depends on their distance.
#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

struct RopeOptions {
  double base = 10000;     // pair i of n turns by position * base^(-i / n)
  int64_t rotary_dim = 0;  // the first so many elements of a head turn, the others stay; 0: all
  // Which elements are a pair: i and i + rotary_dim / 2 (Llama's rotate_half), or 2 i and 2 i + 1 (the
  // original form).
  bool interleaved = false;
  bool inverse = false;  // turns back: by the negative angle
};

// The cosines and sines of these positions (i64, [seq] or [batch, seq]): [..., seq, 2, pairs], in f32, or
// f64 where asked for. Angles are computed in f64. The same for all layers, so made once and passed on.
Tensor rope_table(const Tensor& positions, int64_t pairs, double base = 10000,
                  DType dtype = DType::f32);

// x is [batch, heads, seq, head_dim], the layout of ops/attention/attention.h. `where` says how far each position
// turns: positions, i64, [seq] for all batches or [batch, seq], so that a decoder passes where it is as
// data; or their rope_table, whose base and number of pairs then count.
Tensor rope(const Tensor& x, const Tensor& where, const RopeOptions& options = {});

}  // namespace brrr
