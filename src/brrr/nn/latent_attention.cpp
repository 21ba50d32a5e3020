#include "brrr/nn/latent_attention.h"

#include <cmath>

#include "brrr/ops/attention/attention.h"
#include "brrr/ops/attention/rope.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

void require_sizes(const LatentAttentionOptions& o) {
  check(o.heads > 0 && o.kv_rank > 0 && o.nope_dim > 0 && o.value_dim > 0,
        "latent attention: heads (", o.heads, "), kv_rank (", o.kv_rank, "), nope_dim (",
        o.nope_dim, ") and value_dim (", o.value_dim, ") must be positive");
  check(o.rope_dim > 0 && o.rope_dim % 2 == 0, "latent attention: rope_dim ", o.rope_dim,
        " does not make pairs; use a positive even number");
  check(o.q_rank >= 0, "latent attention: q_rank ", o.q_rank, " must be 0 or positive");
}

}  // namespace

LatentAttention::LatentAttention(int64_t width, Random& random,
                                 const LatentAttentionOptions& options)
    : options_(options) {
  require_sizes(options_);
  const int64_t q_width = options_.heads * (options_.nope_dim + options_.rope_dim),
                kv_width = options_.heads * (options_.nope_dim + options_.value_dim);
  const auto add_linear = [&](const char* name, int64_t from, int64_t to, const Init& init) {
    auto part =
        std::make_unique<Linear>(from, to, random, LinearOptions{.bias = false, .init = init});
    add_module(name, *part);
    return part;
  };
  const auto add_norm = [&](const char* name, int64_t dim) {
    auto part = std::make_unique<RmsNorm>(dim, options_.norm_eps);
    add_module(name, *part);
    return part;
  };
  if (options_.q_rank == 0) {
    q_ = add_linear("q_proj", width, q_width, options_.init);
  } else {
    q_a_ = add_linear("q_a_proj", width, options_.q_rank, options_.init);
    q_norm_ = add_norm("q_a_layernorm", options_.q_rank);
    q_b_ = add_linear("q_b_proj", options_.q_rank, q_width, options_.init);
  }
  kv_a_ =
      add_linear("kv_a_proj_with_mqa", width, options_.kv_rank + options_.rope_dim, options_.init);
  kv_norm_ = add_norm("kv_a_layernorm", options_.kv_rank);
  kv_b_ = add_linear("kv_b_proj", options_.kv_rank, kv_width, options_.init);
  out_ = add_linear("o_proj", options_.heads * options_.value_dim, width, options_.out_init);
}
LatentAttention::~LatentAttention() = default;

int64_t LatentAttention::count_for(int64_t width, const LatentAttentionOptions& o) {
  require_sizes(o);
  const int64_t q_width = o.heads * (o.nope_dim + o.rope_dim);
  const int64_t q = o.q_rank == 0 ? width * q_width : o.q_rank * (width + 1 + q_width);
  return q + width * (o.kv_rank + o.rope_dim) + o.kv_rank +
         o.kv_rank * o.heads * (o.nope_dim + o.value_dim) + o.heads * o.value_dim * width;
}

Tensor LatentAttention::queries(const Tensor& x, const Tensor& positions) const {
  const int64_t head_dim = options_.nope_dim + options_.rope_dim;
  const Tensor flat = q_ ? (*q_)(x) : (*q_b_)((*q_norm_)((*q_a_)(x)));
  const Tensor q = transpose(view(flat, {x.dim(0), x.dim(1), options_.heads, head_dim}), 1, 2);
  const Tensor turned = rope(slice(q, -1, {options_.nope_dim, head_dim}), positions,
                             {.base = options_.rope_base, .interleaved = true});
  return concat({slice(q, -1, {0, options_.nope_dim}), turned}, -1);
}

LayerCache LatentAttention::make_cache(int64_t batch, int64_t capacity) const {
  const Tensor& weight = out_->weight;
  return {zeros({batch, 1, capacity, options_.kv_rank + options_.rope_dim},
                {weight.dtype(), weight.device()})};
}

Tensor LatentAttention::attend(const Tensor& q, const Tensor& latent, const Tensor& shared,
                               const ForwardInputs& inputs) const {
  const int64_t batch = latent.dim(0), seq = latent.dim(1), heads = options_.heads;
  const Tensor key_value = transpose(
      view((*kv_b_)(latent), {batch, seq, heads, options_.nope_dim + options_.value_dim}), 1, 2);
  const Tensor k = concat({slice(key_value, -1, {0, options_.nope_dim}),
                           expand(shared, {batch, heads, seq, options_.rope_dim})},
                          -1);
  const Tensor v = slice(key_value, -1, {options_.nope_dim, key_value.dim(-1)});
  return attention(q, k, v,
                   {.causal = true, .window = options_.window, .documents = inputs.documents});
}

Tensor LatentAttention::attend_cached(const Tensor& q, const Tensor& latent, const Tensor& shared,
                                      const ForwardInputs& inputs) const {
  const int64_t nope = options_.nope_dim, head_dim = nope + options_.rope_dim;
  const Tensor weights =
      view(kv_b_->weight, {options_.heads, nope + options_.value_dim, options_.kv_rank});
  const Tensor keys = append_to_cache(inputs.layer_cache()[0],
                                      concat({unsqueeze(latent, 1), shared}, -1), *inputs.decode);
  const Tensor absorbed = matmul(slice(q, -1, {0, nope}), slice(weights, 1, {0, nope}));
  const Tensor mixed = attention(concat({absorbed, slice(q, -1, {nope, head_dim})}, -1), keys,
                                 slice(keys, -1, {0, options_.kv_rank}),
                                 {.scale = 1 / std::sqrt(static_cast<double>(head_dim)),
                                  .causal = true,
                                  .window = options_.window,
                                  .lengths = inputs.decode->starts + q.dim(2)});
  return matmul(mixed, transpose(slice(weights, 1, {nope, nope + options_.value_dim})));
}

Tensor LatentAttention::forward(const Tensor& x, const ForwardInputs& inputs) const {
  const int64_t batch = x.dim(0), seq = x.dim(1), rank = options_.kv_rank;
  const Tensor positions = inputs.decode ? decode_positions(*inputs.decode, seq)
                                         : arange(0, static_cast<double>(seq), 1,
                                                  {.dtype = DType::i64, .device = x.device()});
  const Tensor both = (*kv_a_)(x);
  const Tensor latent = (*kv_norm_)(slice(both, -1, {0, rank}));
  const Tensor shared = rope(unsqueeze(slice(both, -1, {rank, rank + options_.rope_dim}), 1),
                             positions, {.base = options_.rope_base, .interleaved = true});
  const Tensor q = queries(x, positions);
  const Tensor mixed =
      inputs.decode ? attend_cached(q, latent, shared, inputs) : attend(q, latent, shared, inputs);
  return (*out_)(
      reshape(transpose(mixed, 1, 2), {batch, seq, options_.heads * options_.value_dim}));
}

}  // namespace brrr
