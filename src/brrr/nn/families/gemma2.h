// Gemma 2: norms before and after attention and FFN, with a scale of 1 + weight; embeddings scaled by sqrt(width);
// smooth bounds on the scores of attention and on the logits; a sliding window in every other layer, from the first
// one on; a FFN gated by GELU. The head is the table of tokens. Parameters have the names of Hugging Face.
#pragma once

#include <memory>

#include "brrr/nn/layers.h"
#include "brrr/nn/model_family.h"

namespace brrr {

struct Gemma2Config {
  int64_t vocab = 256000;
  int64_t context = 8192;
  int64_t layers = 26;
  int64_t width = 2304;
  int64_t heads = 8;
  int64_t kv_heads = 4;    // 0: as many as heads
  int64_t head_dim = 256;  // 0: width / heads
  int64_t hidden = 9216;
  int64_t window = 4096;  // of layers 0, 2, 4, ...; the others see all
  double score_divisor =
      256;                // scores are q k / sqrt(score_divisor); theirs: query_pre_attn_scalar
  double score_cap = 50;  // 0: none
  double logit_cap = 30;  // 0: none
  double rope_base = 10000;
  double norm_eps = 1e-6;
  double dropout = 0;            // of embeddings and of what blocks add
  double attention_dropout = 0;  // of the probabilities inside attention

  // V h + L (2 h d (a + g) + 3 h f + 4 h) + h
  int64_t parameter_count() const;
  ModelShape shape() const;
  static const ModelFamily& family();
  bool operator==(const Gemma2Config&) const = default;
};

// rms_norm(x) * (1 + weight); the weight starts at 0.
class Gemma2Norm : public Layer {
 public:
  Gemma2Norm(int64_t dim, double eps);
  Tensor weight;

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  double eps_;
};

class Gemma2 : public LanguageModel {
 public:
  Gemma2(const Gemma2Config& config, Random& random);
  ~Gemma2() override;

  const Gemma2Config& config() const { return config_; }
  std::string_view family() const override { return "gemma2"; }
  int64_t vocab() const override { return config_.vocab; }
  int64_t context() const override { return config_.context; }
  int64_t width() const override { return config_.width; }
  const Tensor& head_weight() const override { return embed_.weight; }
  double logit_cap() const override { return config_.logit_cap; }
  bool supports_cache() const override { return true; }
  DecodeCache make_cache(int64_t batch, int64_t capacity) const override;

 protected:
  Tensor body(const Tensor& tokens, const ForwardInputs& inputs) const override;

 private:
  class Block;

  Gemma2Config config_;
  Embedding embed_;
  Dropout drop_;
  std::vector<std::unique_ptr<Block>> blocks_;
  Gemma2Norm norm_;
};

}  // namespace brrr
