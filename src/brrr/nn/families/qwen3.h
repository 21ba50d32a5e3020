// Qwen3: a Llama whose queries and keys have an RMS norm per head, with heads whose size does not follow from the
// width. Parameters have the names of Hugging Face.
#pragma once

#include "brrr/nn/families/llama.h"

namespace brrr {

struct Qwen3Config {
  int64_t vocab = 151936;
  int64_t context = 40960;
  int64_t layers = 28;
  int64_t width = 1024;
  int64_t heads = 16;
  int64_t kv_heads = 8;    // 0: as many as heads
  int64_t head_dim = 128;  // 0: width / heads
  int64_t hidden = 3072;
  bool tied = true;  // the head is the table of tokens
  double rope_base = 1e6;
  double norm_eps = 1e-6;
  double dropout = 0;            // of embeddings and of what blocks add
  double attention_dropout = 0;  // of the probabilities inside attention

  // Of rotary positions stretched after training; nn/rope_scaling.h has what each means.
  RopeStretch rope_stretch = RopeStretch::none;
  double rope_factor = 1, rope_low_turns = 1, rope_high_turns = 4;
  int64_t rope_trained_context = 8192;

  LlamaConfig as_llama() const;
  int64_t parameter_count() const { return as_llama().parameter_count(); }
  ModelShape shape() const { return as_llama().shape(); }
  static const ModelFamily& family();
  bool operator==(const Qwen3Config&) const = default;
};

class Qwen3 : public Llama {
 public:
  Qwen3(const Qwen3Config& config, Random& random) : Llama(config.as_llama(), random, "qwen3") {}
};

}  // namespace brrr
