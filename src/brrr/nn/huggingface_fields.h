// Reads config.json of transformers field by field: what is there must be of its kind and in its range, and what is
// left out is what their class of the family has by default. Where their classes disagree the field must be given.
// For the families; it needs nlohmann/json, which users of the library do not.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "brrr/nn/model_family.h"
#include "brrr/nn/rope_scaling.h"

namespace brrr::huggingface {

using Json = nlohmann::json;

struct Document {
  Json json;                // an object
  std::string_view type;    // which of the family's types it is
  bool sizes_only = false;  // for a plan: positions may be stretched in ways that are not run
};

bool is_set(const Json& json, const char* key);  // there, and not null

// How a whole number is read. Without `if_absent` the field must be there, without `if_null` it must not be null.
struct Whole {
  const char* key;
  int64_t least = 1, most = kLargestSize;
  std::optional<int64_t> if_absent = {}, if_null = {};
};
int64_t whole(const Json& json, const Whole& field);

double positive(const Json& json, const char* key, std::optional<double> otherwise = {});

// Words, flags and lists of words.
template <typename T>
T value_or(const Json& json, const char* key, T otherwise) {
  if (!is_set(json, key)) return otherwise;
  try {
    return json[key].get<T>();
  } catch (const Json::exception&) {
    fail("config.json: ", key, " is ", json[key].dump(), ", which is not of its type");
  }
}

// Settings that change what a model computes and that ours cannot have any other way.
template <typename T>
void require_setting(const Json& json, const char* key, const T& only) {
  const T given = value_or<T>(json, key, only);
  check(given == only, "config.json: ", key, " is ", json.contains(key) ? json[key].dump() : "null",
        "; only ", Json(only).dump(), " is supported");
}

// What a class of transformers has where a file says nothing.
struct ClassDefaults {
  int64_t context = 0;
  int64_t kv_heads = 0, head_dim = 0;  // 0: as many as heads; width / heads
  bool tied = false;
  int64_t window = 0;  // 0: none
  double rope_base = 1e4, norm_eps = 1e-6;
};

int64_t read_kv_heads(const Json& json, const ClassDefaults& defaults, int64_t heads);
// Null is width / heads, except where the class has a size of its own.
int64_t read_head_dim(const Json& json, const ClassDefaults& defaults);
// Every entry of "layer_types", where there is one, must be kinds[layer % kinds.size()].
void require_layer_types(const Json& json, const std::vector<std::string_view>& kinds);

// Rotary positions: plain, or stretched over more than the model was trained with. Older files keep the base beside
// "rope_scaling", newer ones have all of it in "rope_parameters".
struct Rope {
  double base = 1e4;
  RopeScaling scaling = {};
};
Rope read_rope(const Json& json, const ClassDefaults& defaults);
template <typename Config>
void set_rope(const Rope& rope, Config& config) {
  config.rope_base = rope.base;
  config.rope_stretch = rope.scaling.kind;
  config.rope_factor = rope.scaling.factor;
  config.rope_low_turns = rope.scaling.low_turns;
  config.rope_high_turns = rope.scaling.high_turns;
  config.rope_trained_context = rope.scaling.trained_context;
}
void write_rope(const Rope& rope, Json& json);

// Sizes under the names that all decoders of transformers but GPT-2 have, and those of our fields.
template <typename Config>
void read_sizes(const Json& json, const ClassDefaults& defaults, Config& config) {
  config.vocab = whole(json, {.key = "vocab_size"});
  config.context = whole(json, {.key = "max_position_embeddings", .if_absent = defaults.context});
  config.layers = whole(json, {.key = "num_hidden_layers", .most = kMostLayers});
  config.width = whole(json, {.key = "hidden_size"});
  config.heads = whole(json, {.key = "num_attention_heads"});
  config.hidden = whole(json, {.key = "intermediate_size"});
  config.norm_eps = positive(json, "rms_norm_eps", defaults.norm_eps);
}

template <typename Config>
Json written_sizes(const Config& config, const char* type, const char* class_name) {
  const ModelShape shape = config.shape();
  return {{"model_type", type},
          {"architectures", {class_name}},
          {"vocab_size", config.vocab},
          {"max_position_embeddings", config.context},
          {"num_hidden_layers", config.layers},
          {"hidden_size", config.width},
          {"num_attention_heads", config.heads},
          {"num_key_value_heads", shape.kv_heads},
          {"head_dim", shape.head_dim},
          {"intermediate_size", config.hidden},
          {"rms_norm_eps", config.norm_eps},
          {"attention_bias", false}};
}

}  // namespace brrr::huggingface
