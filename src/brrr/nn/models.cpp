#include "brrr/nn/models.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace brrr {
namespace {

using Json = nlohmann::ordered_json;

// Choices are words in JSON.
Json json_of(const ModelField& field, const FieldValue& value) {
  if (!field.words.empty()) return field.words[static_cast<size_t>(std::get<int64_t>(value))];
  return std::visit([](const auto& each) { return Json(each); }, value);
}

FieldValue read_choice(const ModelField& field, const Json& json) {
  const std::string word = json.is_string() ? json.get<std::string>() : json.dump();
  std::string known;
  for (size_t i = 0; i < field.words.size(); ++i) {
    if (field.words[i] == word) return static_cast<int64_t>(i);
    known += join_text(known.empty() ? "" : ", ", field.words[i]);
  }
  fail("model: ", field.name, " is ", word, "; use one of ", known);
}

// `now` has the type of the field.
FieldValue read_value(const ModelField& field, const Json& json, const FieldValue& now) {
  if (!field.words.empty()) return read_choice(field, json);
  if (std::holds_alternative<bool>(now)) {
    check(json.is_boolean(), "model: ", field.name, " is ", json.dump(), "; use true or false");
    return json.get<bool>();
  }
  if (std::holds_alternative<int64_t>(now)) {
    check(json.is_number_integer(), "model: ", field.name, " is ", json.dump(),
          "; use a whole number");
    return json.get<int64_t>();
  }
  check(json.is_number(), "model: ", field.name, " is ", json.dump(), "; use a number");
  return json.get<double>();
}

void read_field(ModelConfig& config, const std::string& key, const Json& value) {
  std::string known;
  for (const ModelField& field : config.family().fields) {
    known += join_text(known.empty() ? "" : ", ", field.name);
    if (field.name != key) continue;
    config.set(key, read_value(field, value, config.field(key)));
    return;
  }
  fail("model: there is no setting \"", key, "\"; the settings are ", known);
}

template <typename Visit>
void for_each_preset(Visit&& visit) {
  for (const ModelFamily* family : model_families()) {
    if (!family->presets) continue;
    for (const ModelPreset& preset : family->presets()) visit(preset);
  }
}

}  // namespace

ModelConfig model_preset(std::string_view name) {
  const ModelConfig* found = nullptr;
  std::string known;
  for_each_preset([&](const ModelPreset& preset) {
    if (preset.name == name) found = &preset.config;
    known += join_text(known.empty() ? "" : ", ", preset.name);
  });
  if (!found) fail("there is no model named \"", name, "\"; use one of ", known);
  return *found;
}

std::vector<std::string_view> model_presets() {
  std::vector<std::string_view> names;
  for_each_preset([&](const ModelPreset& preset) { names.push_back(preset.name); });
  return names;
}

std::string_view family_of(const ModelConfig& config) { return config.family().name; }
ModelShape shape_of(const ModelConfig& config) { return config.shape(); }
int64_t parameter_count(const ModelConfig& config) {
  return config.family().parameter_count(config);
}
int64_t active_parameter_count(const ModelConfig& config) {
  return config.family().active_parameter_count(config);
}
int64_t vocab_of(const ModelConfig& config) { return config.size("vocab"); }
int64_t context_of(const ModelConfig& config) { return config.size("context"); }

std::string to_json(const ModelConfig& config) {
  Json json{{"family", family_of(config)}};
  for (const ModelField& field : config.family().fields) {
    json[std::string(field.name)] = json_of(field, config.field(field.name));
  }
  return json.dump();
}

ModelConfig model_from_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  check(json.is_object() && json.contains("family") && json["family"].is_string(),
        "model: the configuration must be a JSON object with a \"family\"");
  ModelConfig config = find_family(json["family"].get<std::string>()).defaults();
  for (const auto& [key, value] : json.items()) {
    if (key != "family") read_field(config, key, value);
  }
  return config;
}

std::unique_ptr<LanguageModel> make_model(const ModelConfig& config, Random& random) {
  return config.family().make(config, random);
}

}  // namespace brrr
