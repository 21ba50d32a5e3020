// GPT-2: learned positions, pre-norm blocks of attention and a GELU network, the table of tokens used
// again as the head.
#pragma once

#include <memory>

#include "brrr/nn/layers.h"
#include "brrr/nn/model_family.h"

namespace brrr {

// How the projections that end in the residual stream start: GPT-2's smaller normal, or at zero, where
// every block is the identity at first.
enum class ResidualInit : uint8_t { scaled, zero };

struct Gpt2Config {
  int64_t vocab = 50257;
  int64_t context = 1024;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;
  bool bias = true;    // in projections and norms
  double dropout = 0;  // of embeddings and of what blocks add
  ResidualInit residual_init = ResidualInit::scaled;
  double attention_dropout = 0;  // of the probabilities inside attention
  int64_t head_dim = 0;          // 0: width / heads
  int64_t hidden = 0;            // 0: 4 width

  // Vh + Th + L (4 h a d + 2 h f + 3 a d + h + f + h + 4 h) + 2h, that is L (12 h^2 + 13 h) for a d = h and
  // f = 4 h; without biases Vh + Th + L (4 h a d + 2 h f + 2 h) + h
  int64_t parameter_count() const;
  ModelShape shape() const;
  static const ModelFamily& family();
  bool operator==(const Gpt2Config&) const = default;
};

// "gpt2-124m", "gpt2-350m", "gpt2-774m", "gpt2-1558m" and smaller ones; throws Error with the list on any
// other name.
Gpt2Config gpt2_preset(std::string_view name);

class Gpt2 : public LanguageModel {
 public:
  Gpt2(const Gpt2Config& config, Random& random);
  ~Gpt2() override;

  const Gpt2Config& config() const { return config_; }
  std::string_view family() const override { return "gpt2"; }
  int64_t vocab() const override { return config_.vocab; }
  int64_t context() const override { return config_.context; }
  int64_t width() const override { return config_.width; }
  const Tensor& head_weight() const override { return wte_.weight; }
  bool supports_cache() const override { return true; }
  DecodeCache make_cache(int64_t batch, int64_t capacity) const override;

 protected:
  Tensor body(const Tensor& tokens, const ForwardInputs& inputs) const override;

 private:
  class Block;
  Tensor positions(const Tensor& tokens, const ForwardInputs& inputs) const;

  Gpt2Config config_;
  Embedding wte_, wpe_;
  Dropout drop_;
  std::vector<std::unique_ptr<Block>> blocks_;
  LayerNorm ln_f_;
};

}  // namespace brrr
