#include "brrr/nn/attention.h"

#include "brrr/ops/attention/attention.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

// The options with every 0 that stands for a default made explicit.
SelfAttentionOptions resolved(int64_t width, SelfAttentionOptions options) {
  check(options.heads > 0, "attention: ", options.heads, " heads; there must be at least one");
  if (options.kv_heads == 0) options.kv_heads = options.heads;
  check(options.kv_heads > 0 && options.heads % options.kv_heads == 0, "attention: ", options.heads,
        " heads do not share ", options.kv_heads, " key and value heads evenly");
  check(options.head_dim > 0 || width % options.heads == 0, "attention: ", options.heads,
        " heads do not divide a width of ", width, "; set head_dim");
  if (options.head_dim == 0) options.head_dim = width / options.heads;
  check(!options.fused_qkv || options.kv_heads == options.heads,
        "attention: one projection for q, k and v has no groups; ", options.kv_heads, " of ",
        options.heads, " heads need separate ones");
  check(!options.rope || options.head_dim % 2 == 0 || options.rope->rotary_dim > 0,
        "attention: heads of ", options.head_dim, " elements do not turn in pairs");
  return options;
}

// [batch, seq, heads * dim] -> [batch, heads, seq, dim], a view.
Tensor split_heads(const Tensor& x, int64_t heads) {
  return transpose(view(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), 1, 2);
}

}  // namespace

SelfAttention::SelfAttention(int64_t width, Random& random, const SelfAttentionOptions& options)
    : options_(resolved(width, options)), drop_(options.dropout, options.dropout_site) {
  const int64_t q_width = options_.heads * options_.head_dim,
                kv_width = options_.kv_heads * options_.head_dim;
  const LinearOptions in{.bias = options_.qkv_bias, .init = options_.init},
      out{.bias = options_.out_bias, .init = options_.out_init};
  const auto add = [&](const char* name, int64_t from, int64_t to, const LinearOptions& how) {
    auto part = std::make_unique<Linear>(from, to, random, how);
    add_module(name, *part);
    return part;
  };
  if (options_.fused_qkv) {
    qkv_ = add("c_attn", width, 3 * q_width, in);
  } else {
    q_ = add("q_proj", width, q_width, in);
    k_ = add("k_proj", width, kv_width, in);
    v_ = add("v_proj", width, kv_width, in);
  }
  out_ = add(options_.fused_qkv ? "c_proj" : "o_proj", q_width, width, out);
  if (options_.rope && options_.rope_scaling.kind != RopeStretch::none) {
    const int64_t turning =
        options_.rope->rotary_dim > 0 ? options_.rope->rotary_dim : options_.head_dim;
    const std::vector<double> frequencies =
        scaled_frequencies(options_.rope->base, turning / 2, options_.rope_scaling);
    frequencies_ = to(from_values(frequencies, {turning / 2}), out_->weight.device());
  }
  if (options_.qk_norm) {
    q_norm_ = std::make_unique<RmsNorm>(options_.head_dim, options_.norm_eps);
    k_norm_ = std::make_unique<RmsNorm>(options_.head_dim, options_.norm_eps);
    add_module("q_norm", *q_norm_);
    add_module("k_norm", *k_norm_);
  }
}
SelfAttention::~SelfAttention() = default;

int64_t SelfAttention::count_for(int64_t width, const SelfAttentionOptions& options) {
  const SelfAttentionOptions sizes = resolved(width, options);
  const int64_t q = sizes.heads * sizes.head_dim, kv = sizes.kv_heads * sizes.head_dim;
  return 2 * width * (q + kv) + (sizes.qkv_bias ? q + 2 * kv : 0) + (sizes.out_bias ? width : 0) +
         (sizes.qk_norm ? 2 * sizes.head_dim : 0);
}

SelfAttention::Heads SelfAttention::project(const Tensor& x) const {
  if (!qkv_) {
    return {split_heads((*q_)(x), options_.heads), split_heads((*k_)(x), options_.kv_heads),
            split_heads((*v_)(x), options_.kv_heads)};
  }
  const Tensor qkv = view((*qkv_)(x), {x.dim(0), x.dim(1), 3, options_.heads, options_.head_dim});
  const std::vector<Tensor> parts = unstack(qkv, 2);
  return {transpose(parts[0], 1, 2), transpose(parts[1], 1, 2), transpose(parts[2], 1, 2)};
}

LayerCache SelfAttention::make_cache(int64_t batch, int64_t capacity) const {
  check(options_.causal, "attention: tokens that see later ones cannot be decoded one by one");
  const Tensor& weight = out_->weight;
  const Shape shape{batch, options_.kv_heads, capacity, options_.head_dim};
  const auto make = [&] { return zeros(shape, {weight.dtype(), weight.device()}); };
  return {make(), make()};
}

// Only distances count, so documents packed behind each other need no positions of their own.
void SelfAttention::turn(Heads& heads, const RopeOptions& how, const ForwardInputs& inputs) const {
  const int64_t seq = heads.q.dim(2);
  const Device device = heads.q.device();
  Tensor where = inputs.decode ? decode_positions(*inputs.decode, seq)
                               : arange(0, static_cast<double>(seq), 1, {DType::i64, device});
  if (frequencies_.defined())
    where = rope_table_of(where, to(frequencies_, device),
                          heads.q.dtype() == DType::f64 ? DType::f64 : DType::f32);
  heads.q = rope(heads.q, where, how);
  heads.k = rope(heads.k, where, how);
}

// Without a cache the tokens are the whole sequence; with one they follow what it holds.
Tensor SelfAttention::attend(Heads heads, const ForwardInputs& inputs) const {
  AttentionOptions rule{.scale = options_.scale,
                        .causal = options_.causal,
                        .window = options_.window,
                        .soft_cap = options_.soft_cap,
                        .documents = inputs.documents};
  if (inputs.decode) {
    const LayerCache& cache = inputs.layer_cache();
    heads.k = append_to_cache(cache[0], heads.k, *inputs.decode);
    heads.v = append_to_cache(cache[1], heads.v, *inputs.decode);
    rule.lengths = inputs.decode->starts + heads.q.dim(2);
  }
  if (options_.dropout == 0 || !inputs.dropout_key.defined())
    return attention(heads.q, heads.k, heads.v, rule);
  return mix_values(drop_(attention_probabilities(heads.q, heads.k, rule), inputs), heads.v);
}

Tensor SelfAttention::forward(const Tensor& x, const ForwardInputs& inputs) const {
  const int64_t batch = x.dim(0), seq = x.dim(1);
  Heads heads = project(x);
  if (options_.qk_norm) {
    heads.q = (*q_norm_)(heads.q);
    heads.k = (*k_norm_)(heads.k);
  }
  if (options_.rope) turn(heads, *options_.rope, inputs);
  const Tensor mixed = attend(std::move(heads), inputs);
  return (*out_)(reshape(transpose(mixed, 1, 2), {batch, seq, options_.heads * options_.head_dim}));
}

}  // namespace brrr
