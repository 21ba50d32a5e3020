// Self-attention with its projections, in one configurable module: multi-head or grouped-query,
// causal or not, sliding window, rotary positions, normalised queries and keys.
#pragma once

#include <optional>

#include "brrr/nn/layers.h"
#include "brrr/nn/rope_scaling.h"

namespace brrr {

struct SelfAttentionOptions {
  int64_t heads = 1;
  int64_t kv_heads = 0;  // heads share keys and values in groups; 0: as many as heads
  int64_t head_dim = 0;  // 0: width / heads
  bool causal = true;
  int64_t window = 0;    // > 0: a token sees only so many, itself included
  bool qk_norm = false;  // RMS norm of every query and key head, before they turn
  double norm_eps = 1e-5;
  std::optional<double> scale = {};  // of the scores; 1 / sqrt(head_dim) by default
  double soft_cap = 0;               // > 0: bounds the scores
  std::optional<RopeOptions> rope = {};
  RopeScaling rope_scaling = {};
  bool qkv_bias = false, out_bias = false;
  // One projection for q, k and v under GPT-2's names c_attn and c_proj, in place of q_proj, k_proj,
  // v_proj and o_proj. Only without groups.
  bool fused_qkv = false;
  // Of the probabilities, where the call has a dropout key. Then the matrix of scores is made, and
  // memory grows with the square of the sequence.
  double dropout = 0;
  int64_t dropout_site = 0;
  Init init = Init::normal(), out_init = Init::normal();
};

// x [batch, seq, width] -> [batch, seq, width]
class SelfAttention : public Layer {
 public:
  SelfAttention(int64_t width, Random& random, const SelfAttentionOptions& options);
  ~SelfAttention() override;
  // How many parameters one has.
  static int64_t count_for(int64_t width, const SelfAttentionOptions& options);
  // Its keys and values; for causal attention alone.
  LayerCache make_cache(int64_t batch, int64_t capacity) const;

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  struct Heads {
    Tensor q, k, v;  // [batch, heads or kv_heads, seq, head_dim]
  };
  Heads project(const Tensor& x) const;
  void turn(Heads& heads, const RopeOptions& how, const ForwardInputs& inputs) const;
  Tensor attend(Heads heads, const ForwardInputs& inputs) const;

  SelfAttentionOptions options_;
  std::unique_ptr<Linear> qkv_, q_, k_, v_, out_;
  std::unique_ptr<RmsNorm> q_norm_, k_norm_;
  Tensor frequencies_;  // of rotary positions that are scaled; undefined where they are not
  Dropout drop_;
};

}  // namespace brrr
