// The language models that have a name.
#include "brrr/nn/models.h"

namespace brrr {
namespace {

struct Preset {
  std::string_view name;
  ModelConfig config;
};

// Sizes of the published models as their configuration files have them. The tiny ones are for tests, the
// small ones for one computer.
const std::vector<Preset>& presets() {
  static const std::vector<Preset> kPresets = {
      {"gpt2-tiny", Gpt2Config{.vocab = 256, .context = 64, .layers = 4, .heads = 4, .width = 64}},
      {"gpt2-char", Gpt2Config{.vocab = 65, .context = 256, .layers = 6, .heads = 6, .width = 384}},
      {"gpt2-124m", Gpt2Config{.layers = 12, .heads = 12, .width = 768}},
      {"gpt2-350m", Gpt2Config{.layers = 24, .heads = 16, .width = 1024}},
      {"gpt2-774m", Gpt2Config{.layers = 36, .heads = 20, .width = 1280}},
      {"gpt2-1558m", Gpt2Config{.layers = 48, .heads = 25, .width = 1600}},
      {"gpt3-175b", Gpt2Config{.context = 2048, .layers = 96, .heads = 96, .width = 12288}},
      {"llama-tiny", LlamaConfig{.vocab = 256,
                                 .context = 64,
                                 .layers = 2,
                                 .width = 64,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .hidden = 176,
                                 .tied = true}},
      {"llama-moe-tiny", LlamaConfig{.vocab = 256,
                                     .context = 64,
                                     .layers = 2,
                                     .width = 64,
                                     .heads = 4,
                                     .kv_heads = 2,
                                     .hidden = 96,
                                     .tied = true,
                                     .experts = 4,
                                     .top_k = 2}},
      {"llama-mla-tiny", LlamaConfig{.vocab = 256,
                                     .context = 64,
                                     .layers = 2,
                                     .width = 64,
                                     .heads = 4,
                                     .hidden = 176,
                                     .tied = true,
                                     .q_rank = 48,
                                     .kv_rank = 32,
                                     .nope_dim = 16,
                                     .rope_dim = 8,
                                     .value_dim = 16}},
      {"stories-260k", LlamaConfig{.vocab = 512,
                                   .context = 512,
                                   .layers = 5,
                                   .width = 64,
                                   .heads = 8,
                                   .kv_heads = 4,
                                   .hidden = 172,
                                   .tied = true}},
      {"stories-15m",
       LlamaConfig{
           .context = 256, .layers = 6, .width = 288, .heads = 6, .hidden = 768, .tied = true}},
      {"stories-110m",
       LlamaConfig{
           .context = 1024, .layers = 12, .width = 768, .heads = 12, .hidden = 2048, .tied = true}},
      {"smollm-135m", LlamaConfig{.vocab = 49152,
                                  .context = 2048,
                                  .layers = 30,
                                  .width = 576,
                                  .heads = 9,
                                  .kv_heads = 3,
                                  .hidden = 1536,
                                  .tied = true}},
      {"qwen2.5-0.5b", LlamaConfig{.vocab = 151936,
                                   .context = 32768,
                                   .layers = 24,
                                   .width = 896,
                                   .heads = 14,
                                   .kv_heads = 2,
                                   .hidden = 4864,
                                   .tied = true,
                                   .qkv_bias = true,
                                   .rope_base = 1e6,
                                   .norm_eps = 1e-6}},
      {"tinyllama-1.1b", LlamaConfig{.context = 2048,
                                     .layers = 22,
                                     .width = 2048,
                                     .heads = 32,
                                     .kv_heads = 4,
                                     .hidden = 5632}},
      {"qwen2.5-1.5b", LlamaConfig{.vocab = 151936,
                                   .context = 32768,
                                   .layers = 28,
                                   .width = 1536,
                                   .heads = 12,
                                   .kv_heads = 2,
                                   .hidden = 8960,
                                   .tied = true,
                                   .qkv_bias = true,
                                   .rope_base = 1e6,
                                   .norm_eps = 1e-6}},
      {"llama2-7b",
       LlamaConfig{.context = 4096, .layers = 32, .width = 4096, .heads = 32, .hidden = 11008}},
      {"llama2-13b",
       LlamaConfig{.context = 4096, .layers = 40, .width = 5120, .heads = 40, .hidden = 13824}},
      {"llama2-70b", LlamaConfig{.context = 4096,
                                 .layers = 80,
                                 .width = 8192,
                                 .heads = 64,
                                 .kv_heads = 8,
                                 .hidden = 28672}},
      {"qwen2.5-7b", LlamaConfig{.vocab = 152064,
                                 .context = 32768,
                                 .layers = 28,
                                 .width = 3584,
                                 .heads = 28,
                                 .kv_heads = 4,
                                 .hidden = 18944,
                                 .qkv_bias = true,
                                 .rope_base = 1e6,
                                 .norm_eps = 1e-6}},
      {"llama3-8b", LlamaConfig{.vocab = 128256,
                                .context = 8192,
                                .layers = 32,
                                .width = 4096,
                                .heads = 32,
                                .kv_heads = 8,
                                .hidden = 14336,
                                .rope_base = 5e5}},
      {"llama3-70b", LlamaConfig{.vocab = 128256,
                                 .context = 8192,
                                 .layers = 80,
                                 .width = 8192,
                                 .heads = 64,
                                 .kv_heads = 8,
                                 .hidden = 28672,
                                 .rope_base = 5e5}},
      {"llama3-405b", LlamaConfig{.vocab = 128256,
                                  .context = 131072,
                                  .layers = 126,
                                  .width = 16384,
                                  .heads = 128,
                                  .kv_heads = 8,
                                  .hidden = 53248,
                                  .rope_base = 5e5}},
      {"mixtral-8x7b", LlamaConfig{.context = 32768,
                                   .layers = 32,
                                   .width = 4096,
                                   .heads = 32,
                                   .kv_heads = 8,
                                   .hidden = 14336,
                                   .rope_base = 1e6,
                                   .experts = 8,
                                   .top_k = 2}},
      {"deepseek-v3", LlamaConfig{.vocab = 129280,
                                  .context = 163840,
                                  .layers = 61,
                                  .width = 7168,
                                  .heads = 128,
                                  .hidden = 18432,
                                  .norm_eps = 1e-6,
                                  .experts = 256,
                                  .top_k = 8,
                                  .expert_hidden = 2048,
                                  .shared_expert_hidden = 2048,
                                  .q_rank = 1536,
                                  .kv_rank = 512,
                                  .nope_dim = 128,
                                  .rope_dim = 64,
                                  .value_dim = 128,
                                  .dense_layers = 3}},
      {"rnn-tiny", RecurrentLmConfig{.cell = Cell::rnn, .context = 64, .layers = 1, .width = 64}},
      {"gru-tiny", RecurrentLmConfig{.cell = Cell::gru, .context = 64, .layers = 1, .width = 64}},
      {"lstm-tiny", RecurrentLmConfig{.cell = Cell::lstm, .context = 64, .layers = 1, .width = 64}},
      {"lstm-small", RecurrentLmConfig{.cell = Cell::lstm, .layers = 2, .width = 512}}};
  return kPresets;
}

template <typename Config>
Config preset_of(std::string_view name) {
  std::string known;
  for (const Preset& preset : presets()) {
    if (!std::holds_alternative<Config>(preset.config)) continue;
    if (preset.name == name) return std::get<Config>(preset.config);
    known += join_text(known.empty() ? "" : ", ", preset.name);
  }
  fail("there is no model named \"", name, "\"; use one of ", known);
}

}  // namespace

ModelConfig model_preset(std::string_view name) {
  std::string known;
  for (const Preset& preset : presets()) {
    if (preset.name == name) return preset.config;
    known += join_text(known.empty() ? "" : ", ", preset.name);
  }
  fail("there is no model named \"", name, "\"; use one of ", known);
}

std::vector<std::string_view> model_presets() {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  return names;
}

Gpt2Config gpt2_preset(std::string_view name) { return preset_of<Gpt2Config>(name); }
LlamaConfig llama_preset(std::string_view name) { return preset_of<LlamaConfig>(name); }

}  // namespace brrr
