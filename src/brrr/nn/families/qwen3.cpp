#include "brrr/nn/families/qwen3.h"

#include "brrr/nn/feed_forward.h"
#include "brrr/nn/huggingface_fields.h"

namespace brrr {
namespace {

using huggingface::Json;

constexpr huggingface::ClassDefaults kDefaults{.context = 32768, .kv_heads = 32, .head_dim = 128};

// Sizes of the published models as their configuration files have them.
const std::vector<ModelPreset>& presets() {
  static const std::vector<ModelPreset> kPresets = {
      {"qwen3-tiny", Qwen3Config{.vocab = 256,
                                 .context = 64,
                                 .layers = 2,
                                 .width = 64,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .head_dim = 32,
                                 .hidden = 176}},
      {"qwen3-0.6b", Qwen3Config{.layers = 28, .width = 1024, .heads = 16, .hidden = 3072}},
      {"qwen3-1.7b", Qwen3Config{.layers = 28, .width = 2048, .heads = 16, .hidden = 6144}},
      {"qwen3-4b", Qwen3Config{.layers = 36, .width = 2560, .heads = 32, .hidden = 9728}},
      {"qwen3-8b",
       Qwen3Config{.layers = 36, .width = 4096, .heads = 32, .hidden = 12288, .tied = false}}};
  return kPresets;
}

ModelConfig read(const huggingface::Document& document) {
  const Json& json = document.json;
  huggingface::require_setting<std::string>(json, "hidden_act", "silu");
  huggingface::require_setting(json, "attention_bias", false);
  huggingface::require_setting(json, "use_sliding_window", false);
  huggingface::require_layer_types(json, {"full_attention"});
  Qwen3Config config;
  huggingface::read_sizes(json, kDefaults, config);
  config.kv_heads = huggingface::read_kv_heads(json, kDefaults, config.heads);
  config.head_dim = huggingface::read_head_dim(json, kDefaults);
  config.tied = huggingface::value_or(json, "tie_word_embeddings", kDefaults.tied);
  if (document.sizes_only) return config;
  huggingface::set_rope(huggingface::read_rope(json, kDefaults), config);
  return config;
}

std::string write(const ModelConfig& given) {
  const auto& c = given.get<Qwen3Config>();
  Json json = huggingface::written_sizes(c, "qwen3", "Qwen3ForCausalLM");
  json.update({{"hidden_act", "silu"},
               {"tie_word_embeddings", c.tied},
               {"use_sliding_window", false},
               {"attention_dropout", c.attention_dropout}});
  const LlamaConfig llama = c.as_llama();
  huggingface::write_rope({.base = llama.rope_base, .scaling = llama.rope_scaling()}, json);
  return json.dump(1);
}

ModelFamily make_family() {
  using C = Qwen3Config;
  static constexpr std::string_view kRopeStretches[] = {"none", "linear", "llama3"};
  ModelFamily family = define_family<Qwen3Config, Qwen3>(
      "qwen3", {model_field("vocab", &C::vocab), model_field("context", &C::context),
                model_field("layers", &C::layers), model_field("width", &C::width),
                model_field("heads", &C::heads), model_field("kv_heads", &C::kv_heads),
                model_field("head_dim", &C::head_dim), model_field("hidden", &C::hidden),
                model_field("tied", &C::tied), model_field("rope_base", &C::rope_base),
                model_field("norm_eps", &C::norm_eps), model_field("dropout", &C::dropout),
                model_field("attention_dropout", &C::attention_dropout),
                model_field("rope_stretch", &C::rope_stretch, kRopeStretches),
                model_field("rope_factor", &C::rope_factor),
                model_field("rope_low_turns", &C::rope_low_turns),
                model_field("rope_high_turns", &C::rope_high_turns),
                model_field("rope_trained_context", &C::rope_trained_context)});
  family.presets = presets;
  // A small model has heads that follow from its width.
  family.from_scratch = [](int64_t width) {
    return ModelConfig(
        Qwen3Config{.kv_heads = 0, .head_dim = 0, .hidden = gated_hidden(width, 16)});
  };
  family.free_shape = [](int64_t width) {
    return ModelConfig(Qwen3Config{.kv_heads = 0, .hidden = gated_hidden(width, 256)});
  };
  family.huggingface = {.types = {{"qwen3", {"Qwen3ForCausalLM"}}}, .read = read, .write = write};
  return family;
}

}  // namespace

const ModelFamily& Qwen3Config::family() {
  static const ModelFamily kFamily = make_family();
  return kFamily;
}

LlamaConfig Qwen3Config::as_llama() const {
  return {.vocab = vocab,
          .context = context,
          .layers = layers,
          .width = width,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = head_dim,
          .hidden = hidden,
          .tied = tied,
          .qk_norm = true,
          .rope_base = rope_base,
          .norm_eps = norm_eps,
          .dropout = dropout,
          .attention_dropout = attention_dropout,
          .rope_stretch = rope_stretch,
          .rope_factor = rope_factor,
          .rope_low_turns = rope_low_turns,
          .rope_high_turns = rope_high_turns,
          .rope_trained_context = rope_trained_context};
}

}  // namespace brrr
