#include "brrr/nn/models.h"

#include <nlohmann/json.hpp>

namespace brrr {
namespace {

using Json = nlohmann::ordered_json;

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
      {"rnn-tiny", RecurrentLmConfig{.cell = Cell::rnn, .context = 64, .layers = 1, .width = 64}},
      {"gru-tiny", RecurrentLmConfig{.cell = Cell::gru, .context = 64, .layers = 1, .width = 64}},
      {"lstm-tiny", RecurrentLmConfig{.cell = Cell::lstm, .context = 64, .layers = 1, .width = 64}},
      {"lstm-small", RecurrentLmConfig{.cell = Cell::lstm, .layers = 2, .width = 512}}};
  return kPresets;
}

// Calls visit(name, field) for every field of a configuration, in the order of its declaration.
template <typename Config, typename Visit>
void for_each_field(Config& c, Visit&& visit) {
  if constexpr (std::is_same_v<std::remove_const_t<Config>, Gpt2Config>) {
    visit("vocab", c.vocab), visit("context", c.context), visit("layers", c.layers);
    visit("heads", c.heads), visit("width", c.width), visit("bias", c.bias);
    visit("dropout", c.dropout), visit("residual_init", c.residual_init);
  } else if constexpr (std::is_same_v<std::remove_const_t<Config>, LlamaConfig>) {
    visit("vocab", c.vocab), visit("context", c.context), visit("layers", c.layers);
    visit("width", c.width), visit("heads", c.heads), visit("kv_heads", c.kv_heads);
    visit("head_dim", c.head_dim), visit("hidden", c.hidden), visit("tied", c.tied);
    visit("qkv_bias", c.qkv_bias), visit("qk_norm", c.qk_norm), visit("window", c.window);
    visit("rope_base", c.rope_base), visit("norm_eps", c.norm_eps), visit("dropout", c.dropout);
    visit("zero_residual_init", c.zero_residual_init), visit("experts", c.experts);
    visit("top_k", c.top_k), visit("expert_hidden", c.expert_hidden);
    visit("shared_expert_hidden", c.shared_expert_hidden);
    visit("capacity_factor", c.capacity_factor), visit("balance_weight", c.balance_weight);
    visit("q_rank", c.q_rank), visit("kv_rank", c.kv_rank), visit("nope_dim", c.nope_dim);
    visit("rope_dim", c.rope_dim), visit("value_dim", c.value_dim);
  } else {
    visit("cell", c.cell), visit("vocab", c.vocab), visit("context", c.context);
    visit("layers", c.layers), visit("width", c.width), visit("tied", c.tied);
    visit("dropout", c.dropout);
  }
}

// Choices are words in JSON.
constexpr std::string_view kResidualInits[] = {"scaled", "zero"}, kCells[] = {"rnn", "gru", "lstm"};
std::span<const std::string_view> words_of(ResidualInit) { return kResidualInits; }
std::span<const std::string_view> words_of(Cell) { return kCells; }

template <typename Field>
Json json_of(Field value) {
  if constexpr (std::is_enum_v<Field>) {
    return words_of(value)[static_cast<size_t>(value)];
  } else {
    return value;
  }
}

template <typename Field>
void read_field(std::string_view name, const Json& json, Field& field) {
  if constexpr (std::is_enum_v<Field>) {
    const std::string word = json.is_string() ? json.get<std::string>() : json.dump();
    std::string known;
    for (size_t i = 0; i < words_of(field).size(); ++i) {
      if (words_of(field)[i] == word) {
        field = static_cast<Field>(i);
        return;
      }
      known += join_text(known.empty() ? "" : ", ", words_of(field)[i]);
    }
    fail("model: ", name, " is ", word, "; use one of ", known);
  } else if constexpr (std::is_same_v<Field, bool>) {
    check(json.is_boolean(), "model: ", name, " is ", json.dump(), "; use true or false");
    field = json.get<bool>();
  } else if constexpr (std::is_same_v<Field, int64_t>) {
    check(json.is_number_integer(), "model: ", name, " is ", json.dump(), "; use a whole number");
    field = json.get<int64_t>();
  } else {
    check(json.is_number(), "model: ", name, " is ", json.dump(), "; use a number");
    field = json.get<double>();
  }
}

template <typename Config>
Config config_from(const Json& json) {
  Config config;
  for (const auto& [key, value] : json.items()) {
    if (key == "family") continue;
    bool found = false;
    std::string known;
    for_each_field(config, [&](std::string_view name, auto& field) {
      known += join_text(known.empty() ? "" : ", ", name);
      if (key != name) return;
      found = true;
      read_field(name, value, field);
    });
    check(found, "model: there is no setting \"", key, "\"; the settings are ", known);
  }
  return config;
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

std::string_view family_of(const ModelConfig& config) {
  constexpr std::string_view kFamilies[] = {"gpt2", "llama", "recurrent"};
  return kFamilies[config.index()];
}

int64_t parameter_count(const ModelConfig& config) {
  return std::visit([](const auto& c) { return c.parameter_count(); }, config);
}
int64_t vocab_of(const ModelConfig& config) {
  return std::visit([](const auto& c) { return c.vocab; }, config);
}
int64_t context_of(const ModelConfig& config) {
  return std::visit([](const auto& c) { return c.context; }, config);
}
ModelConfig with_vocab(ModelConfig config, int64_t vocab) {
  std::visit([&](auto& c) { c.vocab = vocab; }, config);
  return config;
}
ModelConfig with_context(ModelConfig config, int64_t context) {
  std::visit([&](auto& c) { c.context = context; }, config);
  return config;
}

std::string to_json(const ModelConfig& config) {
  Json json{{"family", family_of(config)}};
  std::visit(
      [&](const auto& c) {
        for_each_field(c, [&](std::string_view name, const auto& field) {
          json[std::string(name)] = json_of(field);
        });
      },
      config);
  return json.dump();
}

ModelConfig model_from_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  check(json.is_object() && json.contains("family") && json["family"].is_string(),
        "model: the configuration must be a JSON object with a \"family\"");
  const std::string family = json["family"].get<std::string>();
  if (family == "gpt2") return config_from<Gpt2Config>(json);
  if (family == "llama") return config_from<LlamaConfig>(json);
  if (family == "recurrent") return config_from<RecurrentLmConfig>(json);
  fail("model: there is no family \"", family, "\"; use gpt2, llama or recurrent");
}

std::unique_ptr<LanguageModel> make_model(const ModelConfig& config, Random& random) {
  if (const auto* gpt2 = std::get_if<Gpt2Config>(&config))
    return std::make_unique<Gpt2>(*gpt2, random);
  if (const auto* llama = std::get_if<LlamaConfig>(&config))
    return std::make_unique<Llama>(*llama, random);
  return std::make_unique<RecurrentLm>(std::get<RecurrentLmConfig>(config), random);
}

}  // namespace brrr
