#include "brrr/ops/attention/attention_scores.h"

#include <cmath>
#include <limits>

#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/norm/softmax.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

void check_extra(const InferCall& call, int extra, const kernels::AttentionSizes& sizes,
                 const kernels::AttentionRule& rule) {
  const int expected = extra + (rule.documents || rule.lengths ? 1 : 0);
  check(call.size() == expected, call.op.name, ": got ", call.size(), " operands instead of ",
        expected);
  if (rule.documents) {
    check(sizes.queries == sizes.keys, call.op.name,
          ": documents need as many queries as keys, not ", sizes.queries, " and ", sizes.keys,
          "; give the whole sequence to both");
    check(call.dtype(extra) == DType::i64 && call.shape(extra) == Shape{sizes.batch, sizes.keys},
          call.op.name, ": documents are ", call.dtype(extra), " of shape ", call.shape(extra),
          "; they must be i64 [batch, seq] = [", sizes.batch, ", ", sizes.keys, "]");
  }
  if (rule.lengths) {
    check(call.dtype(extra) == DType::i64 && call.shape(extra) == Shape{sizes.batch}, call.op.name,
          ": lengths are ", call.dtype(extra), " of shape ", call.shape(extra),
          "; they must be i64 [batch] = [", sizes.batch, "]");
  }
}

void check_settings(const InferCall& call, const kernels::AttentionRule& rule) {
  check(std::isfinite(rule.scale), call.op.name, ": scale ", rule.scale, " must be finite");
  check(rule.window >= 0, call.op.name, ": window ", rule.window,
        " must be positive, or 0 for none");
  check(rule.soft_cap >= 0 && std::isfinite(rule.soft_cap), call.op.name, ": soft_cap ",
        rule.soft_cap, " must be positive, or 0 for none");
  check(!(rule.documents && rule.lengths), call.op.name,
        ": documents and lengths do not mix; give padding a document of its own");
}

// [..., heads or 1, queries, keys] as [batch, kv_heads, group, queries, keys], 1 where it broadcasts.
Tensor split_mask(const Tensor& mask, int64_t kv_heads) {
  Shape shape = mask.shape();
  while (shape.size() < 4) shape.insert(0, 1);
  const int64_t heads = shape[1];
  shape[1] = heads == 1 ? 1 : kv_heads;
  shape.insert(2, heads == 1 || kv_heads == 0 ? 1 : heads / kv_heads);
  return reshape(mask, shape);
}

}  // namespace

kernels::AttentionSizes check_attention(const InferCall& call, int extra) {
  check(call.size() >= extra, call.op.name, ": got ", call.size(), " operands");
  const Shape &q = call.shape(0), &k = call.shape(1), &v = call.shape(2);
  check(q.size() == 4 && k.size() == 4 && v.size() == 4, call.op.name, ": q ", q, ", k ", k, ", v ",
        v, " must be [batch, heads, seq, head_dim]; unsqueeze or transpose them");
  check(q[0] == k[0] && k[0] == v[0], call.op.name, ": batches differ: q ", q, ", k ", k, ", v ", v,
        "; expand them to one batch");
  check(k[1] == v[1] && k[2] == v[2], call.op.name, ": k ", k, " and v ", v,
        " must have the same heads and the same number of keys");
  check(k[2] < int64_t{1} << 31, call.op.name, ": k ", k, " has too many keys; use less than 2^31");
  check(q[3] == k[3], call.op.name, ": head sizes differ: q ", q, ", k ", k);
  check(k[1] == 0 ? q[1] == 0 : q[1] % k[1] == 0, call.op.name, ": ", q[1], " query heads of q ", q,
        " do not share ", k[1], " heads of k ", k, " evenly; use a multiple");
  for (int i : {1, 2}) {
    check(call.dtype(i) == call.dtype(0), call.op.name, ": q is ", call.dtype(0), " and ",
          i == 1 ? "k " : "v ", call.dtype(i), "; cast one of them");
  }
  require_dtype(call, call.dtype(0));
  const kernels::AttentionSizes sizes = kernels::attention_sizes(q, k, v);
  const kernels::AttentionRule rule = kernels::attention_rule(call.attrs);
  check_settings(call, rule);
  check_extra(call, extra, sizes, rule);
  return sizes;
}

Tensor split_heads(const Tensor& x, const kernels::AttentionSizes& sizes) {
  Shape shape = x.shape();
  shape[1] = sizes.kv_heads;
  shape.insert(2, sizes.kv_heads == 0 ? 1 : x.dim(1) / sizes.kv_heads);
  return reshape(x, shape);
}

void check_mask(const TensorType& mask, const kernels::AttentionSizes& sizes, DType q,
                std::string_view op) {
  check(mask.dtype == DType::boolean || mask.dtype == q || mask.dtype == kernels::score_dtype(q),
        op, ": the mask is ", mask.dtype, "; it must be bool (true: may be seen) or ",
        kernels::score_dtype(q), " to add to the scores");
  const Shape scores{sizes.batch, sizes.heads, sizes.queries, sizes.keys};
  const int missing = scores.size() - mask.shape.size();
  bool fits = missing >= 0;
  for (int axis = 0; fits && axis < mask.shape.size(); ++axis)
    fits = mask.shape[axis] == 1 || mask.shape[axis] == scores[axis + missing];
  check(fits, op, ": the mask of shape ", mask.shape,
        " must broadcast to [batch, heads, queries, keys] = ", scores);
}

VisibleSoftmax softmax_visible(const Tensor& scores) {
  const double hidden = -std::numeric_limits<double>::infinity();
  if (scores.numel() == 0) {
    Shape rows = scores.shape();
    rows.pop_back();
    return {scores, full(rows, hidden, {scores.dtype(), scores.device()})};
  }
  // Zeros in place of such rows: -inf - -inf would be NaN, in the result and in the gradient.
  const Tensor blind = equal(max(scores.detach(), {-1}, KeepDims::yes), hidden);
  const Tensor seen = where(blind, 0.0, scores);
  return {where(blind, 0.0, softmax(seen)),
          where(squeeze(blind, -1), hidden, logsumexp(seen, {-1}))};
}

Tensor attention_scores(const Tensor& q, const Tensor& k, const Tensor& extra,
                        const kernels::AttentionRule& rule, const Tensor& mask) {
  Tensor scores = matmul(q, transpose(k)) * rule.scale;
  if (rule.soft_cap > 0) scores = tanh(scores * (1 / rule.soft_cap)) * rule.soft_cap;
  const bool is_rule = mask.defined() && mask.dtype() == DType::boolean;
  if (mask.defined() && !is_rule)
    scores = scores + cast(split_mask(mask, k.dim(1)), scores.dtype());
  const int64_t queries = q.dim(-2), keys = k.dim(-2), batch = q.dim(0);
  const TensorOptions options{DType::i64, q.device()};
  const Tensor key = arange(0, static_cast<double>(keys), 1, options);
  const Tensor row = unsqueeze(arange(0, static_cast<double>(queries), 1, options), 1);
  const Tensor length = rule.lengths ? reshape(extra, {batch, 1, 1, 1, 1})
                                     : full({}, static_cast<double>(keys), options);
  const Tensor position = row + (length - queries);
  Tensor visible = key < length;
  if (rule.causal) visible = logical_and(visible, key <= position);
  if (rule.window > 0) visible = logical_and(visible, position - key < rule.window);
  if (rule.documents) {
    const Tensor of_query = reshape(extra, {batch, 1, 1, queries, 1});
    visible = logical_and(visible, equal(of_query, reshape(extra, {batch, 1, 1, 1, keys})));
  }
  if (is_rule) visible = logical_and(visible, split_mask(mask, k.dim(1)));
  return where(visible, scores, -std::numeric_limits<double>::infinity());
}

}  // namespace brrr
