// Llama and its relatives: RMS norms, rotary positions, grouped-query attention and a gated network,
// without biases (Qwen2 has them in q, k and v). Two parts can be exchanged: the network for a mixture of
// experts (Mixtral), and the attention for a latent one (DeepSeek). Parameters have the names of
// Hugging Face: "model.layers.0.self_attn.q_proj.weight".
#pragma once

#include <memory>

#include "brrr/nn/layers.h"
#include "brrr/nn/model_family.h"
#include "brrr/nn/rope_scaling.h"

namespace brrr {

struct LlamaConfig {
  int64_t vocab = 32000;
  int64_t context = 2048;
  int64_t layers = 32;
  int64_t width = 4096;
  int64_t heads = 32;
  int64_t kv_heads = 0;  // 0: as many as heads
  int64_t head_dim = 0;  // 0: width / heads; published models need not keep to that
  int64_t hidden = 11008;
  bool tied = false;  // the head is the table of tokens
  bool qkv_bias = false;
  bool qk_norm = false;
  int64_t window = 0;  // > 0: sliding window
  double rope_base = 10000;
  double norm_eps = 1e-5;
  double dropout = 0;               // of embeddings and of what blocks add
  bool zero_residual_init = false;  // projections into the residual stream start at 0

  // A mixture of experts in place of the network; 0 experts: none.
  int64_t experts = 0, top_k = 2;
  int64_t expert_hidden = 0;         // 0: hidden
  int64_t shared_expert_hidden = 0;  // > 0: one more network for all tokens
  double capacity_factor = 1.25;     // 0: room for all tokens
  double balance_weight = 0.01;

  // Latent attention in place of the grouped one; kv_rank 0: none.
  int64_t q_rank = 0, kv_rank = 0, nope_dim = 0, rope_dim = 0, value_dim = 0;

  double attention_dropout = 0;  // of the probabilities inside grouped attention
  int64_t dense_layers = 0;      // of a mixture: so many first layers have one network of `hidden`

  // Of rotary positions stretched after training; nn/rope_scaling.h has what each means.
  RopeStretch rope_stretch = RopeStretch::none;
  double rope_factor = 1, rope_low_turns = 1, rope_high_turns = 4;
  int64_t rope_trained_context = 8192;

  RopeScaling rope_scaling() const;

  // (1 or 2) V h + L (attention + network + 2 h) + h
  int64_t parameter_count() const;
  int64_t active_parameter_count() const;  // of the experts only those that one token goes through
  ModelShape shape() const;
  static const ModelFamily& family();
  bool operator==(const LlamaConfig&) const = default;
};

// "llama3-8b", "qwen2.5-0.5b", "llama-tiny", ...; throws Error with the list on any other name.
LlamaConfig llama_preset(std::string_view name);

// config.json and weights of llama, mistral, mixtral, qwen2, smollm3 and DeepSeek (families/llama_huggingface.cpp).
HuggingFaceMapping llama_huggingface();

class Llama : public LanguageModel {
 public:
  // A family whose models are Llamas of some settings gives its name.
  Llama(const LlamaConfig& config, Random& random, std::string_view family = "llama");
  ~Llama() override;

  const LlamaConfig& config() const { return config_; }
  std::string_view family() const override { return family_; }
  int64_t vocab() const override { return config_.vocab; }
  int64_t context() const override { return config_.context; }
  int64_t width() const override { return config_.width; }
  const Tensor& head_weight() const override { return lm_head_ ? lm_head_->weight : embed_.weight; }
  bool supports_cache() const override { return true; }
  DecodeCache make_cache(int64_t batch, int64_t capacity) const override;

 protected:
  Tensor body(const Tensor& tokens, const ForwardInputs& inputs) const override;

 private:
  class Block;

  LlamaConfig config_;
  std::string_view family_;
  Embedding embed_;
  Dropout drop_;
  std::vector<std::unique_ptr<Block>> blocks_;
  RmsNorm norm_;
  std::unique_ptr<Linear> lm_head_;  // none where tied
};

}  // namespace brrr
