// What attention and its gradient share: checks of operands, and the scores in plain ops.
#pragma once

#include "brrr/kernels/calls/attention_rule.h"

namespace brrr {

// Throws Error unless q, k and v are inputs 0, 1, 2 of `call`, fit each other, and the tensor of
// documents or lengths, where the settings name one, is input `extra`.
kernels::AttentionSizes check_attention(const InferCall& call, int extra);

// Heads as [batch, kv_heads, group, ...]: k and v get a group of 1 and broadcast.
Tensor split_heads(const Tensor& x, const kernels::AttentionSizes& sizes);

// The scores [batch, kv_heads, group, queries, keys] in plain ops, -inf where a key is hidden. Operands
// have split heads; `extra` is the tensor of documents or lengths, `mask` one that check_mask accepts. Either
// may be undefined.
Tensor attention_scores(const Tensor& q, const Tensor& k, const Tensor& extra,
                        const kernels::AttentionRule& rule, const Tensor& mask = {});

// Throws Error unless a mask is bool or float and broadcasts to the scores.
void check_mask(const TensorType& mask, const kernels::AttentionSizes& sizes, DType q,
                std::string_view op);

// Softmax and logsumexp over the keys. A query that sees no key has probabilities of 0 and a logsumexp of
// -inf, and passes no gradient on.
struct VisibleSoftmax {
  Tensor probabilities, logsumexp;
};
VisibleSoftmax softmax_visible(const Tensor& scores);

}  // namespace brrr
