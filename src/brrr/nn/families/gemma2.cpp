#include "brrr/nn/families/gemma2.h"

#include <cmath>

#include "brrr/nn/attention.h"
#include "brrr/nn/decoder_blocks.h"
#include "brrr/nn/feed_forward.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/norm/rms_norm.h"

namespace brrr {
namespace {

constexpr double kInitStd = 0.02;

bool is_windowed(int64_t layer) { return layer % 2 == 0; }

SelfAttentionOptions attention_options(const Gemma2Config& config, int64_t layer) {
  return {.heads = config.heads,
          .kv_heads = config.kv_heads,
          .head_dim = config.head_dim,
          .window = is_windowed(layer) ? config.window : 0,
          .scale = 1 / std::sqrt(config.score_divisor),
          .soft_cap = config.score_cap,
          .rope = RopeOptions{.base = config.rope_base},
          .dropout = config.attention_dropout,
          .dropout_site = 1 + 2 * config.layers + layer,
          .init = Init::normal(kInitStd),
          .out_init = Init::scaled_residual(kInitStd, config.layers)};
}

Gemma2Config checked(const Gemma2Config& config) {
  check(config.vocab > 0 && config.context > 0 && config.layers > 0 && config.width > 0 &&
            config.hidden > 0,
        "gemma2: vocab (", config.vocab, "), context (", config.context, "), layers (",
        config.layers, "), width (", config.width, ") and hidden (", config.hidden,
        ") must be positive");
  check(config.window >= 0 && config.score_cap >= 0 && config.logit_cap >= 0, "gemma2: window (",
        config.window, "), score_cap (", config.score_cap, ") and logit_cap (", config.logit_cap,
        ") must be positive, or 0 for none");
  check(config.score_divisor > 0, "gemma2: score_divisor (", config.score_divisor,
        ") must be positive");
  return config;
}

}  // namespace

int64_t Gemma2Config::parameter_count() const {
  const int64_t h = width;
  return vocab * h + h +
         layers *
             (SelfAttention::count_for(h, attention_options(*this, 0)) + 3 * h * hidden + 4 * h);
}

Gemma2Norm::Gemma2Norm(int64_t dim, double eps) : eps_(eps) {
  weight = add_parameter("weight", zeros({dim}, parameter_options()));
}
Tensor Gemma2Norm::forward(const Tensor& x, const ForwardInputs&) const {
  return rms_norm(x, weight + 1.0, eps_);
}

// Dropout sites: 0 for the embeddings, then two a block, then those inside attention.
class Gemma2::Block : public Module {
 public:
  Block(const Gemma2Config& config, int64_t index, Random& random)
      : before_attention_(config.width, config.norm_eps),
        attention_(config.width, random, attention_options(config, index)),
        after_attention_(config.width, config.norm_eps),
        before_ffn_(config.width, config.norm_eps),
        ffn_(config.width, config.hidden, random,
             {.gate = Activation::gelu_tanh,
              .init = Init::normal(kInitStd),
              .out_init = Init::scaled_residual(kInitStd, config.layers)}),
        after_ffn_(config.width, config.norm_eps),
        drop_attention_(config.dropout, 1 + 2 * index),
        drop_ffn_(config.dropout, 2 + 2 * index) {
    add_module("input_layernorm", before_attention_);
    add_module("self_attn", attention_);
    add_module("post_attention_layernorm", after_attention_);
    add_module("pre_feedforward_layernorm", before_ffn_);
    add_module("mlp", ffn_);
    add_module("post_feedforward_layernorm", after_ffn_);
  }
  Tensor operator()(const Tensor& x, const ForwardInputs& inputs) const {
    const graph::Scope scope = enter();
    const Tensor attended = attention_(before_attention_(x), inputs);
    const Tensor mixed = x + drop_attention_(after_attention_(attended), inputs);
    return mixed + drop_ffn_(after_ffn_(ffn_(before_ffn_(mixed))), inputs);
  }
  LayerCache make_cache(int64_t batch, int64_t capacity) const {
    return attention_.make_cache(batch, capacity);
  }

 private:
  Gemma2Norm before_attention_;
  SelfAttention attention_;
  Gemma2Norm after_attention_, before_ffn_;
  SwiGlu ffn_;
  Gemma2Norm after_ffn_;
  Dropout drop_attention_, drop_ffn_;
};

Gemma2::Gemma2(const Gemma2Config& config, Random& random)
    : config_(checked(config)),
      embed_(config.vocab, config.width, random, Init::normal(kInitStd)),
      drop_(config.dropout, 0),
      norm_(config.width, config.norm_eps) {
  add_module("model.embed_tokens", embed_);
  for (int64_t i = 0; i < config.layers; ++i) {
    blocks_.push_back(std::make_unique<Block>(config, i, random));
    add_module(join_text("model.layers.", i), *blocks_.back());
  }
  add_module("model.norm", norm_);
}
Gemma2::~Gemma2() = default;

DecodeCache Gemma2::make_cache(int64_t batch, int64_t capacity) const {
  return cache_of(blocks_, batch, capacity);
}

Tensor Gemma2::body(const Tensor& tokens, const ForwardInputs& inputs) const {
  const Tensor x = drop_(embed_(tokens) * std::sqrt(static_cast<double>(config_.width)), inputs);
  return norm_(run_blocks(blocks_, "model.layers.", x, inputs));
}

}  // namespace brrr
