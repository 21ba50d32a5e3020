// Multi-head latent attention (DeepSeek-V2): keys and values are made from one narrow vector a token,
// and that vector with one rotary key for all heads is all that a cache holds.
//   c = norm(W_a x)           [kv_rank]      k_h = [W_k c ; rope(w x)],  v_h = W_v c
//   q_h = [W_q n ; rope(W_r n)] with n = norm(W_n x) [q_rank], or x itself where q_rank is 0
// A decoder never makes k_h and v_h: with n_h and r_h the two parts of q_h,
//   q_h . k_h = (W_k^T n_h) . c + r_h . rope(w x),   sum_j p_j v_h,j = W_v (sum_j p_j c_j)
// so all heads attend to one key [c ; rope(w x)] whose first part is the value, too.
// Source: DeepSeek-AI, "DeepSeek-V2", arXiv 2405.04434, section 2.1.
#pragma once

#include "brrr/nn/layers.h"

namespace brrr {

struct LatentAttentionOptions {
  int64_t heads = 1;
  int64_t q_rank = 0;     // 0: queries are projected in one step
  int64_t kv_rank = 0;    // of the vector that keys and values come from
  int64_t nope_dim = 0;   // of a query and key head, without position
  int64_t rope_dim = 0;   // of a query and key head, turned by position; even
  int64_t value_dim = 0;  // of a value head
  double rope_base = 10000;
  double norm_eps = 1e-6;
  int64_t window = 0;
  Init init = Init::normal(), out_init = Init::normal();
};

// x [batch, seq, width] -> [batch, seq, width], causal.
class LatentAttention : public Layer {
 public:
  LatentAttention(int64_t width, Random& random, const LatentAttentionOptions& options);
  ~LatentAttention() override;
  // How many parameters one has:
  // h r_q + r_q + r_q a (d_n + d_r)  +  h (r_kv + d_r) + r_kv + r_kv a (d_n + d_v)  +  a d_v h
  static int64_t count_for(int64_t width, const LatentAttentionOptions& options);
  LayerCache make_cache(int64_t batch, int64_t capacity) const;

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  Tensor queries(const Tensor& x, const Tensor& positions) const;
  // Both give [batch, heads, seq, value_dim]; `latent` is c, [batch, seq, kv_rank], and `shared` the
  // rotary key, [batch, 1, seq, rope_dim].
  Tensor attend(const Tensor& q, const Tensor& latent, const Tensor& shared,
                const ForwardInputs& inputs) const;
  Tensor attend_cached(const Tensor& q, const Tensor& latent, const Tensor& shared,
                       const ForwardInputs& inputs) const;

  LatentAttentionOptions options_;
  std::unique_ptr<Linear> q_, q_a_, q_b_, kv_a_, kv_b_, out_;
  std::unique_ptr<RmsNorm> q_norm_, kv_norm_;
};

}  // namespace brrr
