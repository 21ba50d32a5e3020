// What a call of attention asks for, read once from operands and settings: sizes, which keys a query
// sees, and the scores in plain ops. Shared by attention and its gradient.
#pragma once

#include <algorithm>

#include "brrr/graph/op_def.h"

namespace brrr {

struct AttentionSizes {
  int64_t batch, heads, kv_heads, queries, keys, head_dim, value_dim;
  int64_t group() const { return kv_heads == 0 ? 1 : heads / kv_heads; }  // query heads a kv head
};

// Sizes of shapes that fit each other.
AttentionSizes attention_sizes(const Shape& q, const Shape& k, const Shape& v);

// Throws Error unless q, k and v are inputs 0, 1, 2 of `call`, fit each other, and the tensor of
// documents or lengths, where the settings name one, is input `extra`.
AttentionSizes check_attention(const InferCall& call, int extra);

// The settings. At most one of documents and lengths is there.
struct AttentionRule {
  bool causal, documents, lengths;
  int64_t window;  // 0: none
  double scale, soft_cap;
};
AttentionRule attention_rule(const Attrs& attrs);

// The keys of one batch that query i sees: those in [begin(i), end(i)) of its own document. Both bounds
// grow with i.
struct VisibleKeys {
  int64_t length;  // valid keys
  int64_t shift;   // query i stands at position i + shift
  int64_t window;  // as large as any distance where there is none
  bool causal;
  const int64_t* documents;  // of each position, or null

  int64_t begin(int64_t i) const {
    return causal ? std::clamp<int64_t>(i + shift - window + 1, 0, length) : 0;
  }
  int64_t end(int64_t i) const {
    return causal ? std::clamp<int64_t>(i + shift + 1, 0, length) : length;
  }
};
VisibleKeys visible_keys(const AttentionRule& rule, const AttentionSizes& sizes, int64_t length,
                         const int64_t* documents);

// Pairs of query and key that are computed, over all heads. Documents and lengths are data and not known
// before the run: they count as if all keys were theirs.
int64_t visible_pairs(const AttentionRule& rule, const AttentionSizes& sizes);

// f32, or f64 for f64: what scores and their logsumexp are computed in.
DType score_dtype(DType dtype);

// Heads as [batch, kv_heads, group, ...]: k and v get a group of 1 and broadcast.
Tensor split_heads(const Tensor& x, const AttentionSizes& sizes);

// The scores [batch, kv_heads, group, queries, keys] in plain ops, -inf where a key is hidden. Operands
// have split heads; `extra` is the tensor of documents or lengths, `mask` one that check_mask accepts. Either
// may be undefined.
Tensor attention_scores(const Tensor& q, const Tensor& k, const Tensor& extra,
                        const AttentionRule& rule, const Tensor& mask = {});

// Throws Error unless a mask is bool or float and broadcasts to the scores.
void check_mask(const TensorType& mask, const AttentionSizes& sizes, DType q, std::string_view op);

// Softmax and logsumexp over the keys. A query that sees no key has probabilities of 0 and a logsumexp of
// -inf, and passes no gradient on.
struct VisibleSoftmax {
  Tensor probabilities, logsumexp;
};
VisibleSoftmax softmax_visible(const Tensor& scores);

// Whether the settings alone can hide every key from a query.
bool may_see_no_key(const AttentionRule& rule, const AttentionSizes& sizes);

}  // namespace brrr
