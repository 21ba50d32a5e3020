#include "brrr/nn/models.h"

#include <nlohmann/json.hpp>

namespace brrr {
namespace {

using Json = nlohmann::ordered_json;

// Calls visit(name, field) for every field of a configuration, in the order of its declaration.
template <typename Config, typename Visit>
void for_each_field(Config& c, Visit&& visit) {
  if constexpr (std::is_same_v<std::remove_const_t<Config>, Gpt2Config>) {
    visit("vocab", c.vocab), visit("context", c.context), visit("layers", c.layers);
    visit("heads", c.heads), visit("width", c.width), visit("bias", c.bias);
    visit("dropout", c.dropout), visit("residual_init", c.residual_init);
    visit("attention_dropout", c.attention_dropout), visit("head_dim", c.head_dim);
    visit("hidden", c.hidden);
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
    visit("attention_dropout", c.attention_dropout), visit("dense_layers", c.dense_layers);
    visit("rope_stretch", c.rope_stretch), visit("rope_factor", c.rope_factor);
    visit("rope_low_turns", c.rope_low_turns), visit("rope_high_turns", c.rope_high_turns);
    visit("rope_trained_context", c.rope_trained_context);
  } else {
    visit("cell", c.cell), visit("vocab", c.vocab), visit("context", c.context);
    visit("layers", c.layers), visit("width", c.width), visit("tied", c.tied);
    visit("dropout", c.dropout);
  }
}

// Choices are words in JSON.
constexpr std::string_view kResidualInits[] = {"scaled", "zero"}, kCells[] = {"rnn", "gru", "lstm"},
                           kRopeStretches[] = {"none", "linear", "llama3"};
std::span<const std::string_view> words_of(ResidualInit) { return kResidualInits; }
std::span<const std::string_view> words_of(Cell) { return kCells; }
std::span<const std::string_view> words_of(RopeStretch) { return kRopeStretches; }

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

}  // namespace

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
