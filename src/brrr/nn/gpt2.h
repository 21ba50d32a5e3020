// GPT-2: learned positions, pre-norm blocks of attention and a GELU network, the table of tokens used
// again as the head.
#pragma once

#include <memory>
#include <string_view>

#include "brrr/nn/layers.h"

namespace brrr {

struct Gpt2Config {
  int64_t vocab = 50257;
  int64_t context = 1024;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;

  // Vh + Th + L (12 h^2 + 13 h) + 2h
  int64_t parameter_count() const;
};

// "gpt2-124m", "gpt2-350m", "gpt2-774m", "gpt2-1558m", and the small "gpt2-tiny" for tests; throws Error
// with the list on any other name.
Gpt2Config gpt2_preset(std::string_view name);

class Gpt2 : public Module {
 public:
  Gpt2(const Gpt2Config& config, Random& random);
  ~Gpt2() override;

  const Gpt2Config& config() const { return config_; }
  Tensor logits(const Tensor& tokens) const;  // [batch, seq] -> [batch, seq, vocab]
  Tensor loss(const Tensor& tokens, const Tensor& targets) const;

 private:
  class Attention;
  class Mlp;
  class Block;

  Gpt2Config config_;
  Embedding wte_, wpe_;
  std::vector<std::unique_ptr<Block>> blocks_;
  LayerNorm ln_f_;
};

}  // namespace brrr
