#include "brrr/kernels/calls/attention_rule.h"

namespace brrr::kernels {
namespace {

// The sum of clamp(i + shift, 0, most) over i in [0, count): zeros, then one more each, then `most`.
int64_t sum_of_clamped(int64_t shift, int64_t most, int64_t count) {
  const int64_t rising = std::clamp<int64_t>(-shift, 0, count),
                flat = std::clamp<int64_t>(most - shift, rising, count);
  return (flat - rising) * shift + (flat * (flat - 1) - rising * (rising - 1)) / 2 +
         (count - flat) * most;
}

}  // namespace

AttentionSizes attention_sizes(const Shape& q, const Shape& k, const Shape& v) {
  return {.batch = q[0],
          .heads = q[1],
          .kv_heads = k[1],
          .queries = q[2],
          .keys = k[2],
          .head_dim = q[3],
          .value_dim = v[3]};
}

AttentionRule attention_rule(const Attrs& attrs) {
  const int64_t window = attrs.integer("window");
  return {.causal = attrs.flag("causal") || window > 0,
          .documents = attrs.has("documents"),
          .lengths = attrs.has("lengths"),
          .window = window,
          .scale = attrs.number("scale"),
          .soft_cap = attrs.number("soft_cap")};
}

VisibleKeys visible_keys(const AttentionRule& rule, const AttentionSizes& sizes, int64_t length,
                         const int64_t* documents) {
  const int64_t any_distance = sizes.keys + sizes.queries;
  return {.length = length,
          .shift = length - sizes.queries,
          .window = rule.window > 0 ? std::min(rule.window, any_distance) : any_distance,
          .causal = rule.causal,
          .documents = documents};
}

// The sum of end(i) - begin(i), in closed form: sequences on paper may be long.
int64_t visible_pairs(const AttentionRule& rule, const AttentionSizes& sizes) {
  const VisibleKeys keys = visible_keys(rule, sizes, sizes.keys, nullptr);
  const int64_t pairs =
      rule.causal ? sum_of_clamped(keys.shift + 1, keys.length, sizes.queries) -
                        sum_of_clamped(keys.shift - keys.window + 1, keys.length, sizes.queries)
                  : sizes.queries * keys.length;
  return pairs * sizes.batch * sizes.heads;
}

DType score_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// Causal queries that begin before the first key, and lengths, which may be 0. A query sees its own document
// and its own place in a window.
bool may_see_no_key(const AttentionRule& rule, const AttentionSizes& sizes) {
  return sizes.keys == 0 || rule.lengths || (rule.causal && sizes.queries > sizes.keys);
}

}  // namespace brrr::kernels
