#include "brrr/nn/families/llama.h"

#include "brrr/nn/attention.h"
#include "brrr/nn/decoder_blocks.h"
#include "brrr/nn/experts.h"
#include "brrr/nn/feed_forward.h"
#include "brrr/nn/latent_attention.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/matmul/matmul.h"

namespace brrr {
namespace {

constexpr double kInitStd = 0.02;

Init residual_init(const LlamaConfig& config) {
  return config.zero_residual_init ? Init::zeros() : Init::scaled_residual(kInitStd, config.layers);
}

SelfAttentionOptions attention_options(const LlamaConfig& config, int64_t layer) {
  return {.heads = config.heads,
          .kv_heads = config.kv_heads,
          .head_dim = config.head_dim,
          .window = config.window,
          .qk_norm = config.qk_norm,
          .norm_eps = config.norm_eps,
          .rope = RopeOptions{.base = config.rope_base},
          .rope_scaling = config.rope_scaling(),
          .qkv_bias = config.qkv_bias,
          .dropout = config.attention_dropout,
          .dropout_site = 1 + 2 * config.layers + layer,
          .init = Init::normal(kInitStd),
          .out_init = residual_init(config)};
}

LatentAttentionOptions latent_options(const LlamaConfig& config) {
  return {.heads = config.heads,
          .q_rank = config.q_rank,
          .kv_rank = config.kv_rank,
          .nope_dim = config.nope_dim,
          .rope_dim = config.rope_dim,
          .value_dim = config.value_dim,
          .rope_base = config.rope_base,
          .norm_eps = config.norm_eps,
          .window = config.window,
          .init = Init::normal(kInitStd),
          .out_init = residual_init(config)};
}

ExpertsOptions experts_options(const LlamaConfig& config) {
  return {.experts = config.experts,
          .top_k = config.top_k,
          .hidden = config.expert_hidden > 0 ? config.expert_hidden : config.hidden,
          .shared_hidden = config.shared_expert_hidden,
          .capacity_factor = config.capacity_factor,
          .balance_weight = config.balance_weight,
          .init = Init::normal(kInitStd),
          .out_init = residual_init(config)};
}

std::unique_ptr<Layer> make_attention(const LlamaConfig& config, int64_t layer, Random& random) {
  if (config.kv_rank > 0)
    return std::make_unique<LatentAttention>(config.width, random, latent_options(config));
  return std::make_unique<SelfAttention>(config.width, random, attention_options(config, layer));
}

std::unique_ptr<Layer> make_network(const LlamaConfig& config, int64_t layer, Random& random) {
  if (config.experts > 0 && layer >= config.dense_layers)
    return std::make_unique<Experts>(config.width, random, experts_options(config));
  return std::make_unique<SwiGlu>(
      config.width, config.hidden, random,
      FeedForwardOptions{.init = Init::normal(kInitStd), .out_init = residual_init(config)});
}

LlamaConfig checked(const LlamaConfig& config) {
  check(config.vocab > 0 && config.context > 0 && config.layers > 0 && config.width > 0,
        "llama: vocab (", config.vocab, "), context (", config.context, "), layers (",
        config.layers, ") and width (", config.width, ") must be positive");
  check(config.hidden > 0 || config.experts > 0, "llama: hidden (", config.hidden,
        ") must be positive");
  check(config.dense_layers >= 0 && config.dense_layers <= config.layers, "llama: dense_layers (",
        config.dense_layers, ") must lie between 0 and layers (", config.layers, ")");
  check(config.dense_layers == 0 || config.hidden > 0, "llama: hidden (", config.hidden,
        ") must be positive for the dense layers");
  check(config.kv_rank == 0 || config.attention_dropout == 0,
        "llama: latent attention drops nothing inside; attention_dropout must be 0, not ",
        config.attention_dropout);
  check(config.kv_rank == 0 || config.rope_stretch == RopeStretch::none,
        "llama: latent attention has plain rotary positions; rope_stretch must be none");
  return config;
}

// Everything but the networks between attentions.
int64_t count_without_networks(const LlamaConfig& config) {
  const int64_t h = config.width;
  const int64_t attention = config.kv_rank > 0
                                ? LatentAttention::count_for(h, latent_options(config))
                                : SelfAttention::count_for(h, attention_options(config, 0));
  return (config.tied ? 1 : 2) * config.vocab * h + config.layers * (attention + 2 * h) + h;
}

}  // namespace

RopeScaling LlamaConfig::rope_scaling() const {
  return {.kind = rope_stretch,
          .factor = rope_factor,
          .low_turns = rope_low_turns,
          .high_turns = rope_high_turns,
          .trained_context = rope_trained_context};
}

int64_t LlamaConfig::parameter_count() const {
  const int64_t dense = experts > 0 ? dense_layers : layers;
  const int64_t mixture = experts > 0 ? Experts::count_for(width, experts_options(*this)) : 0;
  return count_without_networks(*this) + dense * 3 * width * hidden + (layers - dense) * mixture;
}

int64_t LlamaConfig::active_parameter_count() const {
  if (experts == 0) return parameter_count();
  return count_without_networks(*this) + dense_layers * 3 * width * hidden +
         (layers - dense_layers) * Experts::active_count_for(width, experts_options(*this));
}

// Dropout sites: 0 for the embeddings, then two a block, then those inside attention.
class Llama::Block : public Module {
 public:
  Block(const LlamaConfig& config, int64_t index, Random& random)
      : input_norm_(config.width, config.norm_eps),
        attention_(make_attention(config, index, random)),
        network_norm_(config.width, config.norm_eps),
        network_(make_network(config, index, random)),
        drop_attention_(config.dropout, 1 + 2 * index),
        drop_network_(config.dropout, 2 + 2 * index) {
    add_module("input_layernorm", input_norm_);
    add_module("self_attn", *attention_);
    add_module("post_attention_layernorm", network_norm_);
    add_module("mlp", *network_);
  }
  Tensor operator()(const Tensor& x, const ForwardInputs& inputs) const {
    const graph::Scope scope = enter();
    const Tensor mixed = x + drop_attention_((*attention_)(input_norm_(x), inputs), inputs);
    return mixed + drop_network_((*network_)(network_norm_(mixed), inputs), inputs);
  }
  LayerCache make_cache(int64_t batch, int64_t capacity) const {
    if (const auto* latent = dynamic_cast<const LatentAttention*>(attention_.get()))
      return latent->make_cache(batch, capacity);
    return dynamic_cast<const SelfAttention&>(*attention_).make_cache(batch, capacity);
  }

 private:
  RmsNorm input_norm_;
  std::unique_ptr<Layer> attention_;
  RmsNorm network_norm_;
  std::unique_ptr<Layer> network_;
  Dropout drop_attention_, drop_network_;
};

Llama::Llama(const LlamaConfig& config, Random& random, std::string_view family)
    : config_(checked(config)),
      family_(family),
      embed_(config.vocab, config.width, random, Init::normal(kInitStd)),
      drop_(config.dropout, 0),
      norm_(config.width, config.norm_eps) {
  add_module("model.embed_tokens", embed_);
  for (int64_t i = 0; i < config.layers; ++i) {
    blocks_.push_back(std::make_unique<Block>(config, i, random));
    add_module(join_text("model.layers.", i), *blocks_.back());
  }
  add_module("model.norm", norm_);
  if (!config.tied) {
    lm_head_ =
        std::make_unique<Linear>(config.width, config.vocab, random,
                                 LinearOptions{.bias = false, .init = Init::normal(kInitStd)});
    add_module("lm_head", *lm_head_);
  }
}
Llama::~Llama() = default;

DecodeCache Llama::make_cache(int64_t batch, int64_t capacity) const {
  return cache_of(blocks_, batch, capacity);
}

Tensor Llama::body(const Tensor& tokens, const ForwardInputs& inputs) const {
  const Tensor x = drop_(embed_(tokens), inputs);
  return norm_(run_blocks(blocks_, "model.layers.", x, inputs));
}

}  // namespace brrr
