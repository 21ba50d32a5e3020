// Scaled dot-product attention without the matrix of scores: memory grows with the lengths, not with
// their product.
//
// Layout, shared with ops/attention/rope.h:
//   q [batch, heads, queries, head_dim]
//   k [batch, kv_heads, keys, head_dim], v [batch, kv_heads, keys, value_dim]
// heads is a multiple of kv_heads: query head h reads head h / (heads / kv_heads) of k and v. Strides
// are free, so q, k and v may be views of one projection [batch, seq, 3, heads, head_dim].
#pragma once

#include <optional>

#include "brrr/tensor/tensor.h"

namespace brrr {

// Which keys a query sees, and how scores are made: attention(q, k, v, {.causal = true}).
struct AttentionOptions {
  std::optional<double> scale = {};  // of the scores; 1 / sqrt(head_dim) by default
  // Query i sees keys up to its own position. Positions are aligned at the end: the last query stands
  // at the last key, query i at i + keys - queries.
  bool causal = false;
  int64_t window = 0;   // > 0: only keys with 0 <= position(query) - position(key) < window
  double soft_cap = 0;  // > 0: scores become soft_cap * tanh(score / soft_cap)
  // i64 [batch, seq], where queries and keys are the same seq: a query sees keys of its own document.
  Tensor documents = {};
  // i64 [batch]: how many keys are valid. The last query stands at the last valid key.
  Tensor lengths = {};
  // Broadcasts to [batch, heads, queries, keys]. Bools: true where a query may see a key. Floats: added to
  // the scores (after scale and soft cap), -inf hides a key; their gradient flows. A key must pass the mask
  // and the rules above. With a mask the scores are a matrix in memory: prefer the rules where they do.
  Tensor mask = {};
};

// softmax(scale * q k^T over the visible keys) v, of shape [batch, heads, queries, value_dim]. A query
// that sees no key gets zeros. Computed in f32, f64 for f64.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options = {});

// The same, with the logsumexp of each query's scores, [batch, heads, queries], f32 (f64 for f64):
// parts of the keys can be attended to apart and put together. -inf where no key is visible.
struct AttentionResult {
  Tensor out, logsumexp;
};
AttentionResult attention_with_logsumexp(const Tensor& q, const Tensor& k, const Tensor& v,
                                         const AttentionOptions& options = {});

// The matrix that attention never makes, in plain ops: softmax(scale * q k^T over the visible keys),
// [batch, heads, queries, keys]. To look at, or to drop parts of; memory grows with the product of the
// lengths. Zeros for a query that sees no key.
Tensor attention_probabilities(const Tensor& q, const Tensor& k,
                               const AttentionOptions& options = {});
// What they make of the values: [batch, heads, queries, value_dim].
Tensor mix_values(const Tensor& probabilities, const Tensor& v);

}  // namespace brrr
