// config.json of transformers, field by field: what is there must be of its kind and in its range, and what is left
// out is what their class of the family has by default. Where their classes disagree the field must be given.
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

#include "brrr/infer/huggingface.h"

namespace brrr {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLargestSize = 100'000'000, kMostLayers = 10'000;

bool is_set(const Json& json, const char* key) {
  return json.contains(key) && !json[key].is_null();
}

// How a whole number is read. Without `if_absent` the field must be there, without `if_null` it must not be null.
struct Whole {
  const char* key;
  int64_t least = 1, most = kLargestSize;
  std::optional<int64_t> if_absent = {}, if_null = {};
};

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

double positive(const Json& json, const char* key, std::optional<double> otherwise = {}) {
  if (!is_set(json, key) && otherwise) return *otherwise;
  check(is_set(json, key) && json[key].is_number() && json[key].get<double>() > 0,
        "config.json: ", key, " is ", json.contains(key) ? json[key].dump() : "missing",
        "; it must be a number above 0");
  return json[key].get<double>();
}

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
struct Family {
  std::string_view type, class_name;
  int64_t context = 0;
  int64_t kv_heads = 0, head_dim = 0;  // 0: as many as heads; width / heads
  bool tied = false;
  int64_t window = 0;  // 0: none
  double rope_base = 1e4, norm_eps = 1e-6;
};
constexpr Family kFamilies[] = {
    {.type = "gpt2", .class_name = "GPT2", .context = 1024},
    {.type = "llama", .class_name = "Llama", .context = 2048},
    {.type = "mistral", .class_name = "Mistral", .context = 131072, .kv_heads = 8, .window = 4096},
    {.type = "mixtral",
     .class_name = "Mixtral",
     .context = 131072,
     .kv_heads = 8,
     .rope_base = 1e6,
     .norm_eps = 1e-5},
    {.type = "qwen2", .class_name = "Qwen2", .context = 32768, .kv_heads = 32},
    {.type = "qwen3", .class_name = "Qwen3", .context = 32768, .kv_heads = 32, .head_dim = 128},
    {.type = "smollm3",
     .class_name = "SmolLM3",
     .context = 32768,
     .kv_heads = 4,
     .tied = true,
     .rope_base = 2e6},
    {.type = "deepseek_v2", .class_name = "DeepseekV2", .context = 2048},
    {.type = "deepseek_v3", .class_name = "DeepseekV3", .context = 4096}};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// "LlamaForCausalLM": the family's model with a head over tokens. Early files differ in capitals. GPT-2's head is its
// table, so that its model without a head has the same parameters.
bool is_class_of(const Family& family, const std::string& name) {
  const std::string given = lower(name), start = lower(std::string(family.class_name));
  if (family.type == "gpt2") return given == start + "lmheadmodel" || given == start + "model";
  return given == start + "forcausallm";
}

// By "model_type", or where that is missing by "architectures"; where both are there they must agree.
const Family& find_family(const Json& json, std::string_view refusal) {
  const auto classes = value_or<std::vector<std::string>>(json, "architectures", {});
  const auto type = value_or<std::string>(json, "model_type", "");
  for (const Family& family : kFamilies) {
    const auto is_its = [&](const std::string& name) { return is_class_of(family, name); };
    const bool is_named =
        type.empty() ? !classes.empty() && is_its(classes.front()) : family.type == type;
    if (!is_named) continue;
    for (const std::string& name : classes)
      check(is_its(name), "config.json: architectures names ", name, " beside ",
            type.empty() ? classes.front() : join_text("model_type ", type), "; only ",
            family.class_name, family.type == "gpt2" ? "LMHeadModel" : "ForCausalLM",
            " belongs to it");
    return family;
  }
  fail("config.json: model_type ", type.empty() ? "none" : type, refusal);
}

Gpt2Config read_gpt2(const Json& json, const Family& family) {
  const std::string activation = value_or<std::string>(json, "activation_function", "gelu_new");
  check(activation == "gelu_new" || activation == "gelu_pytorch_tanh",
        "config.json: activation_function is ", activation, "; only gelu_new is supported");
  require_setting(json, "layer_norm_epsilon", 1e-5);
  require_setting(json, "tie_word_embeddings", true);
  require_setting(json, "scale_attn_weights", true);
  require_setting(json, "scale_attn_by_inverse_layer_idx", false);
  require_setting(json, "pruned_heads", Json::object());
  const int64_t context = whole(json, {.key = "n_positions", .if_absent = family.context});
  // An old second name, which their class no longer reads.
  const int64_t again = whole(json, {.key = "n_ctx", .if_absent = context, .if_null = context});
  check(again == context, "config.json: n_ctx is ", again, " and n_positions is ", context,
        "; give one context");
  return {.vocab = whole(json, {.key = "vocab_size"}),
          .context = context,
          .layers = whole(json, {.key = "n_layer", .most = kMostLayers}),
          .heads = whole(json, {.key = "n_head"}),
          .width = whole(json, {.key = "n_embd"}),
          .hidden = whole(json, {.key = "n_inner", .if_absent = 0, .if_null = 0})};
}

// Rotary positions: plain, or stretched over more than the model was trained with. Older files keep the
// base beside "rope_scaling", newer ones have all of it in "rope_parameters".
void read_rope(const Json& json, const Family& family, LlamaConfig& config) {
  const char* key = is_set(json, "rope_parameters") ? "rope_parameters" : "rope_scaling";
  const Json rope = is_set(json, key) ? json[key] : Json::object();
  check(rope.is_object(), "config.json: ", key, " is ", rope.dump(), ", which is no object");
  config.rope_base = positive(rope, "rope_theta", positive(json, "rope_theta", family.rope_base));
  const std::string kind =
      value_or<std::string>(rope, "rope_type", value_or<std::string>(rope, "type", "default"));
  if (kind == "default") return;
  check(kind == "linear" || kind == "llama3", "config.json: ", key, " of type ", kind,
        " is not supported; default, linear and llama3 are");
  config.rope_factor = positive(rope, "factor");
  config.rope_stretch = kind == "linear" ? RopeStretch::linear : RopeStretch::llama3;
  if (kind == "linear") return;
  config.rope_low_turns = positive(rope, "low_freq_factor");
  config.rope_high_turns = positive(rope, "high_freq_factor");
  config.rope_trained_context = whole(rope, {.key = "original_max_position_embeddings"});
}

// The window that all layers share; 0: none.
int64_t read_window(const Json& json, const Family& family) {
  int64_t window = 0;
  if (family.type == "mistral" || family.type == "mixtral")
    window = whole(json, {.key = "sliding_window", .if_absent = family.window, .if_null = 0});
  else
    require_setting(json, "use_sliding_window", false);
  const char* all = window > 0 ? "sliding_attention" : "full_attention";
  for (const std::string& kind : value_or<std::vector<std::string>>(json, "layer_types", {}))
    check(kind == all, "config.json: layer_types names ", kind, "; only ", all,
          " in all layers is supported here");
  return window;
}

int64_t read_kv_heads(const Json& json, const Family& family, int64_t heads) {
  const int64_t usual = family.kv_heads > 0 ? family.kv_heads : heads;
  const int64_t kv_heads =
      whole(json, {.key = "num_key_value_heads", .if_absent = usual, .if_null = heads});
  check(heads % kv_heads == 0, "config.json: num_key_value_heads is ", kv_heads,
        json.contains("num_key_value_heads") ? "" : " by default", ", which does not divide ",
        heads, " heads");
  return kv_heads;
}

// Null is width / heads, except where the class has a size of its own.
int64_t read_head_dim(const Json& json, const Family& family) {
  Whole field{.key = "head_dim", .if_absent = family.head_dim};
  if (family.head_dim == 0) field.if_null = 0;
  return whole(json, field);
}

// All but the positions, the keys and the experts.
LlamaConfig read_common(const Json& json, const Family& family) {
  require_setting<std::string>(json, "hidden_act", "silu");
  require_setting(json, "attention_bias", false);
  require_setting(json, "mlp_bias", false);
  return {.vocab = whole(json, {.key = "vocab_size"}),
          .context = whole(json, {.key = "max_position_embeddings", .if_absent = family.context}),
          .layers = whole(json, {.key = "num_hidden_layers", .most = kMostLayers}),
          .width = whole(json, {.key = "hidden_size"}),
          .heads = whole(json, {.key = "num_attention_heads"}),
          .hidden = whole(json, {.key = "intermediate_size"}),
          .tied = value_or(json, "tie_word_embeddings", family.tied),
          .norm_eps = positive(json, "rms_norm_eps", family.norm_eps)};
}

LlamaConfig read_llama_sizes(const Json& json, const Family& family) {
  LlamaConfig config = read_common(json, family);
  config.kv_heads = read_kv_heads(json, family, config.heads);
  config.head_dim = read_head_dim(json, family);
  config.qkv_bias = family.type == "qwen2";
  config.qk_norm = family.type == "qwen3";
  config.window = read_window(json, family);
  if (family.type != "mixtral") return config;
  config.experts = whole(json, {.key = "num_local_experts", .if_absent = 8});
  config.top_k =
      whole(json, {.key = "num_experts_per_tok", .most = config.experts, .if_absent = 2});
  check(config.top_k <= config.experts, "config.json: num_experts_per_tok is ", config.top_k,
        " by default, of ", config.experts, " experts");
  config.balance_weight = value_or(json, "router_aux_loss_coef", 0.001);
  return config;
}

LlamaConfig read_llama(const Json& json, const Family& family) {
  LlamaConfig config = read_llama_sizes(json, family);
  if (family.type == "mixtral") config.capacity_factor = 0;  // theirs leave no token out
  read_rope(json, family, config);
  return config;
}

// Mixtures of DeepSeek: shared experts are one network of their widths together. Of V2 there are two classes, with
// other experts by default, so that V2's files must say how many there are.
LlamaConfig read_deepseek_sizes(const Json& json, const Family& family) {
  const bool is_v3 = family.type == "deepseek_v3";
  const auto of_v3 = [&](int64_t size) { return is_v3 ? std::optional(size) : std::nullopt; };
  whole(json, {.key = "moe_layer_freq", .most = 1, .if_absent = 1, .if_null = 1});
  LlamaConfig config = read_common(json, family);
  const int64_t kv_heads = whole(
      json, {.key = "num_key_value_heads", .if_absent = config.heads, .if_null = config.heads});
  check(kv_heads == config.heads, "config.json: num_key_value_heads is ", kv_heads,
        "; latent attention has as many as heads, ", config.heads);
  config.experts = whole(json, {.key = "n_routed_experts", .if_absent = of_v3(256)});
  config.top_k =
      whole(json, {.key = "num_experts_per_tok", .most = config.experts, .if_absent = of_v3(8)});
  check(config.top_k <= config.experts, "config.json: num_experts_per_tok is ", config.top_k,
        " by default, of ", config.experts, " experts");
  config.expert_hidden =
      whole(json, {.key = "moe_intermediate_size", .if_absent = is_v3 ? 2048 : 1407});
  const int64_t shared = whole(
      json,
      {.key = "n_shared_experts", .least = 0, .most = 10'000, .if_absent = of_v3(1), .if_null = 0});
  config.shared_expert_hidden = shared * config.expert_hidden;
  config.dense_layers = whole(json, {.key = "first_k_dense_replace",
                                     .least = 0,
                                     .most = config.layers,
                                     .if_absent = is_v3 ? 3 : 0});
  check(config.dense_layers <= config.layers, "config.json: first_k_dense_replace is ",
        config.dense_layers, " by default, of ", config.layers, " layers");
  config.q_rank = whole(json, {.key = "q_lora_rank", .if_absent = 1536, .if_null = 0});
  config.kv_rank = whole(json, {.key = "kv_lora_rank", .if_absent = 512});
  config.nope_dim = whole(json, {.key = "qk_nope_head_dim", .if_absent = 128});
  config.rope_dim = whole(json, {.key = "qk_rope_head_dim", .if_absent = 64});
  check(config.rope_dim % 2 == 0, "config.json: qk_rope_head_dim is ", config.rope_dim,
        "; elements turn in pairs, so it must be even");
  config.value_dim = whole(json, {.key = "v_head_dim", .if_absent = 128});
  return config;
}

Json parse_config(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  check(json.is_object(), "config.json: must be a JSON object");
  return json;
}

void check_decoder(const Json& json) {
  require_setting(json, "add_cross_attention", false);
  require_setting(json, "is_encoder_decoder", false);
}

}  // namespace

ModelConfig config_from_huggingface(std::string_view config_json) {
  constexpr std::string_view kLoaded[] = {"gpt2", "llama", "mistral", "mixtral", "qwen2", "qwen3"};
  constexpr std::string_view kRefusal =
      " is not supported; gpt2, llama, mistral, mixtral, qwen2 and qwen3 are";
  const Json json = parse_config(config_json);
  const Family& family = find_family(json, kRefusal);
  check(std::find(std::begin(kLoaded), std::end(kLoaded), family.type) != std::end(kLoaded),
        "config.json: model_type ", family.type, kRefusal);
  check_decoder(json);
  if (family.type == "gpt2") return read_gpt2(json, family);
  return read_llama(json, family);
}

ModelConfig shape_from_huggingface(std::string_view config_json) {
  const Json json = parse_config(config_json);
  const Family& family = find_family(
      json,
      " is not known; gpt2, llama, mistral, mixtral, qwen2, qwen3, smollm3, deepseek_v2 and "
      "deepseek_v3 are");
  check_decoder(json);
  if (family.type == "gpt2") return read_gpt2(json, family);
  if (family.type.starts_with("deepseek")) return read_deepseek_sizes(json, family);
  return read_llama_sizes(json, family);
}

}  // namespace brrr
