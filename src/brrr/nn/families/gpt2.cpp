#include "brrr/nn/families/gpt2.h"

#include "brrr/nn/attention.h"
#include "brrr/nn/decoder_blocks.h"
#include "brrr/nn/feed_forward.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/matmul/matmul.h"

namespace brrr {
namespace {

constexpr double kInitStd = 0.02, kPositionStd = 0.01;

Init residual_init(const Gpt2Config& config) {
  return config.residual_init == ResidualInit::zero
             ? Init::zeros()
             : Init::scaled_residual(kInitStd, config.layers);
}

SelfAttentionOptions attention_options(const Gpt2Config& config, int64_t layer) {
  return {.heads = config.heads,
          .head_dim = config.head_dim,
          .qkv_bias = config.bias,
          .out_bias = config.bias,
          .fused_qkv = true,
          .dropout = config.attention_dropout,
          .dropout_site = 1 + 2 * config.layers + layer,
          .init = Init::normal(kInitStd),
          .out_init = residual_init(config)};
}

FeedForwardOptions feed_forward_options(const Gpt2Config& config) {
  return {.bias = config.bias, .init = Init::normal(kInitStd), .out_init = residual_init(config)};
}

int64_t hidden_size(const Gpt2Config& config) {
  return config.hidden > 0 ? config.hidden : 4 * config.width;
}

Gpt2Config checked(const Gpt2Config& config) {
  check(config.vocab > 0 && config.context > 0 && config.layers > 0, "gpt2: vocab (", config.vocab,
        "), context (", config.context, ") and layers (", config.layers, ") must be positive");
  check(config.heads > 0 && config.width > 0 &&
            (config.head_dim > 0 || config.width % config.heads == 0),
        "gpt2: ", config.heads, " heads do not divide a width of ", config.width);
  return config;
}

}  // namespace

int64_t Gpt2Config::parameter_count() const {
  const int64_t h = width, f = hidden_size(*this);
  const int64_t ad = head_dim > 0 ? heads * head_dim : h;
  const int64_t matrices = 4 * h * ad + 2 * h * f;
  const int64_t vectors = bias ? 3 * ad + h + f + h + 4 * h : 2 * h;
  return vocab * h + context * h + layers * (matrices + vectors) + (bias ? 2 * h : h);
}

// Dropout sites: 0 for the embeddings, then two a block, then those inside attention.
class Gpt2::Block : public Module {
 public:
  Block(const Gpt2Config& config, int64_t index, Random& random)
      : ln_1_(config.width, {.bias = config.bias}),
        attn_(config.width, random, attention_options(config, index)),
        ln_2_(config.width, {.bias = config.bias}),
        mlp_(config.width, hidden_size(config), random, feed_forward_options(config)),
        drop_attn_(config.dropout, 1 + 2 * index),
        drop_mlp_(config.dropout, 2 + 2 * index) {
    add_module("ln_1", ln_1_);
    add_module("attn", attn_);
    add_module("ln_2", ln_2_);
    add_module("mlp", mlp_);
  }
  Tensor operator()(const Tensor& x, const ForwardInputs& inputs) const {
    const graph::Scope scope = enter();
    const Tensor mixed = x + drop_attn_(attn_(ln_1_(x), inputs), inputs);
    return mixed + drop_mlp_(mlp_(ln_2_(mixed)), inputs);
  }
  LayerCache make_cache(int64_t batch, int64_t capacity) const {
    return attn_.make_cache(batch, capacity);
  }

 private:
  LayerNorm ln_1_;
  SelfAttention attn_;
  LayerNorm ln_2_;
  GeluFeedForward mlp_;
  Dropout drop_attn_, drop_mlp_;
};

Gpt2::Gpt2(const Gpt2Config& config, Random& random)
    : config_(checked(config)),
      wte_(config.vocab, config.width, random, Init::normal(kInitStd)),
      wpe_(config.context, config.width, random, Init::normal(kPositionStd)),
      drop_(config.dropout, 0),
      ln_f_(config.width, {.bias = config.bias}) {
  add_module("wte", wte_);
  add_module("wpe", wpe_);
  for (int64_t i = 0; i < config.layers; ++i) {
    blocks_.push_back(std::make_unique<Block>(config, i, random));
    add_module(join_text("h.", i), *blocks_.back());
  }
  add_module("ln_f", ln_f_);
}
Gpt2::~Gpt2() = default;

DecodeCache Gpt2::make_cache(int64_t batch, int64_t capacity) const {
  return cache_of(blocks_, batch, capacity);
}

// The vectors of the places where tokens stand. Filling may stand past the last one: it takes that.
Tensor Gpt2::positions(const Tensor& tokens, const ForwardInputs& inputs) const {
  if (!inputs.decode) return wpe_.first(tokens.dim(1));
  return wpe_(minimum(decode_positions(*inputs.decode, tokens.dim(1)), config_.context - 1));
}

Tensor Gpt2::body(const Tensor& tokens, const ForwardInputs& inputs) const {
  const Tensor x = drop_(wte_(tokens) + positions(tokens, inputs), inputs);
  return ln_f_(run_blocks(blocks_, "h.", x, inputs));
}

}  // namespace brrr
