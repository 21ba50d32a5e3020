// What a call of attention asks for, read once from operands and settings: sizes, and which keys a query sees. Shared
// by attention, its gradient, and the kernels of both.
#pragma once

#include <algorithm>

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

struct AttentionSizes {
  int64_t batch, heads, kv_heads, queries, keys, head_dim, value_dim;
  int64_t group() const { return kv_heads == 0 ? 1 : heads / kv_heads; }  // query heads a kv head
};

// Sizes of shapes that fit each other.
AttentionSizes attention_sizes(const Shape& q, const Shape& k, const Shape& v);

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

// Whether the settings alone can hide every key from a query.
bool may_see_no_key(const AttentionRule& rule, const AttentionSizes& sizes);

}  // namespace brrr::kernels
