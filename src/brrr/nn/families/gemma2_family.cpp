// Gemma 2 as a family: fields, presets, sizes, and the files of transformers.
#include "brrr/nn/decoder_blocks.h"
#include "brrr/nn/families/gemma2.h"
#include "brrr/nn/feed_forward.h"
#include "brrr/nn/huggingface_fields.h"

namespace brrr {
namespace {

using huggingface::Json;

constexpr huggingface::ClassDefaults kDefaults{
    .context = 8192, .kv_heads = 4, .head_dim = 256, .tied = true, .window = 4096};

// Sizes of the published models as their configuration files have them.
const std::vector<ModelPreset>& presets() {
  static const std::vector<ModelPreset> kPresets = {
      {"gemma-2-tiny", Gemma2Config{.vocab = 256,
                                    .context = 64,
                                    .layers = 2,
                                    .width = 64,
                                    .heads = 4,
                                    .kv_heads = 2,
                                    .head_dim = 32,
                                    .hidden = 176,
                                    .window = 16,
                                    .score_divisor = 32}},
      {"gemma-2-2b", Gemma2Config{}},
      {"gemma-2-9b",
       Gemma2Config{.layers = 42, .width = 3584, .heads = 16, .kv_heads = 8, .hidden = 14336}},
      {"gemma-2-27b", Gemma2Config{.layers = 46,
                                   .width = 4608,
                                   .heads = 32,
                                   .kv_heads = 16,
                                   .head_dim = 128,
                                   .hidden = 36864,
                                   .score_divisor = 144}}};
  return kPresets;
}

// A bound that a file may leave out, or have none of: null.
double read_cap(const Json& json, const char* key, double if_absent) {
  if (json.contains(key) && json[key].is_null()) return 0;
  return huggingface::positive(json, key, if_absent);
}

ModelConfig read(const huggingface::Document& document) {
  const Json& json = document.json;
  // "hidden_act" is an old name, which their class no longer reads.
  huggingface::require_setting<std::string>(json, "hidden_activation", "gelu_pytorch_tanh");
  huggingface::require_setting(json, "attention_bias", false);
  huggingface::require_setting(json, "tie_word_embeddings", true);
  huggingface::require_setting(json, "use_bidirectional_attention", false);
  huggingface::require_layer_types(json, {"sliding_attention", "full_attention"});
  Gemma2Config config;
  huggingface::read_sizes(json, kDefaults, config);
  config.kv_heads = huggingface::read_kv_heads(json, kDefaults, config.heads);
  config.head_dim = huggingface::read_head_dim(json, kDefaults);
  config.window =
      huggingface::whole(json, {.key = "sliding_window", .if_absent = kDefaults.window});
  config.score_divisor = huggingface::positive(json, "query_pre_attn_scalar", 256);
  config.score_cap = read_cap(json, "attn_logit_softcapping", 50);
  config.logit_cap = read_cap(json, "final_logit_softcapping", 30);
  if (document.sizes_only) return config;
  const huggingface::Rope rope = huggingface::read_rope(json, kDefaults);
  check(rope.scaling.kind == RopeStretch::none,
        "config.json: rope_scaling of gemma2 is not supported; only plain positions are");
  config.rope_base = rope.base;
  return config;
}

std::string write(const ModelConfig& given) {
  const auto& c = given.get<Gemma2Config>();
  check(c.window > 0, "gemma2: transformers' Gemma2 has a sliding window; this model has none");
  const auto cap = [](double bound) { return bound > 0 ? Json(bound) : Json(); };
  Json json = huggingface::written_sizes(c, "gemma2", "Gemma2ForCausalLM");
  json.update({{"hidden_activation", "gelu_pytorch_tanh"},
               {"tie_word_embeddings", true},
               {"sliding_window", c.window},
               {"query_pre_attn_scalar", c.score_divisor},
               {"attn_logit_softcapping", cap(c.score_cap)},
               {"final_logit_softcapping", cap(c.logit_cap)},
               {"attention_dropout", c.attention_dropout}});
  huggingface::write_rope({.base = c.rope_base}, json);
  return json.dump(1);
}

// As many key heads as heads, whatever their number will be.
Gemma2Config of_width(int64_t width, int64_t multiple) {
  return {.width = width, .kv_heads = 0, .hidden = gated_hidden(width, multiple)};
}

ModelFamily make_family() {
  using C = Gemma2Config;
  ModelFamily family = define_family<Gemma2Config, Gemma2>(
      "gemma2", {model_field("vocab", &C::vocab), model_field("context", &C::context),
                 model_field("layers", &C::layers), model_field("width", &C::width),
                 model_field("heads", &C::heads), model_field("kv_heads", &C::kv_heads),
                 model_field("head_dim", &C::head_dim), model_field("hidden", &C::hidden),
                 model_field("window", &C::window), model_field("score_divisor", &C::score_divisor),
                 model_field("score_cap", &C::score_cap), model_field("logit_cap", &C::logit_cap),
                 model_field("rope_base", &C::rope_base), model_field("norm_eps", &C::norm_eps),
                 model_field("dropout", &C::dropout),
                 model_field("attention_dropout", &C::attention_dropout)});
  family.presets = presets;
  family.from_scratch = [](int64_t width) {
    Gemma2Config config = of_width(width, 16);
    config.head_dim = 32, config.score_divisor = 32;  // heads of 256 are for wide models
    return ModelConfig(config);
  };
  family.free_shape = [](int64_t width) { return ModelConfig(of_width(width, 256)); };
  family.huggingface = {.types = {{"gemma2", {"Gemma2ForCausalLM"}}}, .read = read, .write = write};
  return family;
}

}  // namespace

const ModelFamily& Gemma2Config::family() {
  static const ModelFamily kFamily = make_family();
  return kFamily;
}

ModelShape Gemma2Config::shape() const {
  ModelShape shape = gated_decoder_shape(*this);
  shape.tied = true;
  if (window > 0) shape.windows = {window, 0};
  shape.layer_vectors = 4 * static_cast<double>(width);
  return shape;
}

}  // namespace brrr
