#include "brrr/nn/huggingface_fields.h"

namespace brrr::huggingface {

bool is_set(const Json& json, const char* key) {
  return json.contains(key) && !json[key].is_null();
}

int64_t whole(const Json& json, const Whole& field) {
  if (!json.contains(field.key) && field.if_absent) return *field.if_absent;
  const Json value = json.contains(field.key) ? json[field.key] : Json("missing");
  if (value.is_null() && field.if_null) return *field.if_null;
  const bool fits = value.is_number_unsigned()
                        ? value.get<uint64_t>() <= static_cast<uint64_t>(field.most)
                        : value.is_number_integer() && value.get<int64_t>() <= field.most;
  check(fits && value.get<int64_t>() >= field.least, "config.json: ", field.key, " is ",
        json.contains(field.key) ? value.dump() : "missing", "; it must be ",
        field.least == field.most
            ? join_text(field.most)
            : join_text("a whole number of ", field.least, " to ", field.most),
        field.if_null ? ", or null" : "");
  return value.get<int64_t>();
}

double positive(const Json& json, const char* key, std::optional<double> otherwise) {
  if (!is_set(json, key) && otherwise) return *otherwise;
  check(is_set(json, key) && json[key].is_number() && json[key].get<double>() > 0,
        "config.json: ", key, " is ", json.contains(key) ? json[key].dump() : "missing",
        "; it must be a number above 0");
  return json[key].get<double>();
}

int64_t read_kv_heads(const Json& json, const ClassDefaults& defaults, int64_t heads) {
  const int64_t usual = defaults.kv_heads > 0 ? defaults.kv_heads : heads;
  const int64_t kv_heads =
      whole(json, {.key = "num_key_value_heads", .if_absent = usual, .if_null = heads});
  check(heads % kv_heads == 0, "config.json: num_key_value_heads is ", kv_heads,
        json.contains("num_key_value_heads") ? "" : " by default", ", which does not divide ",
        heads, " heads");
  return kv_heads;
}

int64_t read_head_dim(const Json& json, const ClassDefaults& defaults) {
  Whole field{.key = "head_dim", .if_absent = defaults.head_dim};
  if (defaults.head_dim == 0) field.if_null = 0;
  return whole(json, field);
}

void require_layer_types(const Json& json, const std::vector<std::string_view>& kinds) {
  const auto given = value_or<std::vector<std::string>>(json, "layer_types", {});
  for (size_t i = 0; i < given.size(); ++i)
    check(given[i] == kinds[i % kinds.size()], "config.json: layer_types names ", given[i],
          " for layer ", i, "; only ", one_of(kinds, "and"),
          kinds.size() == 1 ? " in all layers is supported here" : " in turn are supported here");
}

Rope read_rope(const Json& json, const ClassDefaults& defaults) {
  const char* key = is_set(json, "rope_parameters") ? "rope_parameters" : "rope_scaling";
  const Json given = is_set(json, key) ? json[key] : Json::object();
  check(given.is_object(), "config.json: ", key, " is ", given.dump(), ", which is no object");
  Rope rope;
  rope.base = positive(given, "rope_theta", positive(json, "rope_theta", defaults.rope_base));
  const std::string kind =
      value_or<std::string>(given, "rope_type", value_or<std::string>(given, "type", "default"));
  if (kind == "default") return rope;
  check(kind == "linear" || kind == "llama3", "config.json: ", key, " of type ", kind,
        " is not supported; default, linear and llama3 are");
  rope.scaling.factor = positive(given, "factor");
  rope.scaling.kind = kind == "linear" ? RopeStretch::linear : RopeStretch::llama3;
  if (kind == "linear") return rope;
  rope.scaling.low_turns = positive(given, "low_freq_factor");
  rope.scaling.high_turns = positive(given, "high_freq_factor");
  rope.scaling.trained_context = whole(given, {.key = "original_max_position_embeddings"});
  return rope;
}

void write_rope(const Rope& rope, Json& json) {
  json["rope_theta"] = rope.base;
  const RopeScaling& scaling = rope.scaling;
  if (scaling.kind == RopeStretch::none) return;
  Json& written = json["rope_scaling"];
  written["rope_type"] = scaling.kind == RopeStretch::linear ? "linear" : "llama3";
  written["factor"] = scaling.factor;
  if (scaling.kind == RopeStretch::linear) return;
  written["low_freq_factor"] = scaling.low_turns;
  written["high_freq_factor"] = scaling.high_turns;
  written["original_max_position_embeddings"] = scaling.trained_context;
}

}  // namespace brrr::huggingface
