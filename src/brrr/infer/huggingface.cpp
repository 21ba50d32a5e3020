#include "brrr/infer/huggingface.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "brrr/io/safetensors.h"
#include "brrr/ops/join.h"
#include "brrr/ops/views.h"

namespace brrr {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// A setting of config.json: absent and null are the same.
bool is_set(const Json& json, const char* key) {
  return json.contains(key) && !json[key].is_null();
}

int64_t integer(const Json& json, const char* key) {
  check(is_set(json, key) && json[key].is_number_integer(), "config.json: ", key,
        " must be a whole number");
  return json[key].get<int64_t>();
}
double number(const Json& json, const char* key) {
  check(is_set(json, key) && json[key].is_number(), "config.json: ", key, " must be a number");
  return json[key].get<double>();
}
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

Gpt2Config read_gpt2(const Json& json) {
  const std::string activation = value_or<std::string>(json, "activation_function", "gelu_new");
  check(activation == "gelu_new" || activation == "gelu_pytorch_tanh",
        "config.json: activation_function is ", activation, "; only gelu_new is supported");
  require_setting(json, "layer_norm_epsilon", 1e-5);
  require_setting(json, "tie_word_embeddings", true);
  require_setting(json, "scale_attn_weights", true);
  require_setting(json, "scale_attn_by_inverse_layer_idx", false);
  return {.vocab = integer(json, "vocab_size"),
          .context = value_or<int64_t>(json, "n_positions", value_or<int64_t>(json, "n_ctx", 1024)),
          .layers = integer(json, "n_layer"),
          .heads = integer(json, "n_head"),
          .width = integer(json, "n_embd"),
          .hidden = value_or<int64_t>(json, "n_inner", 0)};
}

// Rotary positions: plain, or stretched over more than the model was trained with. Older files keep the
// base beside "rope_scaling", newer ones have all of it in "rope_parameters".
void read_rope(const Json& json, LlamaConfig& config) {
  const char* key = is_set(json, "rope_parameters") ? "rope_parameters" : "rope_scaling";
  const Json rope = is_set(json, key) ? json[key] : Json::object();
  check(rope.is_object(), "config.json: ", key, " is ", rope.dump(), ", which is no object");
  config.rope_base = value_or(rope, "rope_theta", value_or(json, "rope_theta", 10000.0));
  const std::string kind =
      value_or<std::string>(rope, "rope_type", value_or<std::string>(rope, "type", "default"));
  if (kind == "default") return;
  check(kind == "linear" || kind == "llama3", "config.json: ", key, " of type ", kind,
        " is not supported; default, linear and llama3 are");
  config.rope_factor = number(rope, "factor");
  config.rope_stretch = kind == "linear" ? RopeStretch::linear : RopeStretch::llama3;
  if (kind == "linear") return;
  config.rope_low_turns = number(rope, "low_freq_factor");
  config.rope_high_turns = number(rope, "high_freq_factor");
  config.rope_trained_context = integer(rope, "original_max_position_embeddings");
}

// The window that all layers share; 0: none.
int64_t window_of(const Json& json, const std::string& type) {
  if (type == "mistral" || type == "mixtral") return value_or<int64_t>(json, "sliding_window", 0);
  require_setting(json, "use_sliding_window", false);
  return 0;
}

// What a file leaves out is what their class of the family has by default.
struct FamilyDefaults {
  std::string_view type;
  int64_t context, kv_heads, head_dim;  // 0: as many as heads; width / heads
};
constexpr FamilyDefaults kFamilies[] = {{"llama", 2048, 0, 0},       {"mistral", 131072, 8, 0},
                                        {"mixtral", 131072, 8, 0},   {"qwen2", 32768, 32, 0},
                                        {"qwen3", 32768, 32, 128},   {"smollm3", 32768, 4, 0},
                                        {"deepseek_v2", 2048, 0, 0}, {"deepseek_v3", 4096, 0, 0}};

const FamilyDefaults* find_family(std::string_view type) {
  const auto* found = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                   [&](const FamilyDefaults& f) { return f.type == type; });
  return found == std::end(kFamilies) ? nullptr : found;
}

// "model_type", or the family of "architectures": ["LlamaForCausalLM"].
std::string family_of(const Json& json) {
  if (is_set(json, "model_type")) return value_or<std::string>(json, "model_type", "");
  constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
      {"GPT2", "gpt2"},
      {"Llama", "llama"},
      {"Mistral", "mistral"},
      {"Mixtral", "mixtral"},
      {"Qwen2", "qwen2"},
      {"Qwen3", "qwen3"},
      {"SmolLM3", "smollm3"},
      {"DeepseekV2", "deepseek_v2"},
      {"DeepseekV3", "deepseek_v3"}};
  const auto names =
      value_or<std::vector<std::string>>(json, "architectures", std::vector<std::string>{});
  for (const std::string& name : names) {
    for (const auto& [start, type] : kClasses) {
      if (name == join_text(start, "ForCausalLM") || name == join_text(start, "LMHeadModel"))
        return std::string(type);
    }
  }
  return "none";
}

// Key heads: null is as many as heads; left out, what the class has.
int64_t kv_heads_of(const Json& json, int64_t heads, const FamilyDefaults& family) {
  const int64_t otherwise =
      json.contains("num_key_value_heads") || family.kv_heads == 0 ? heads : family.kv_heads;
  return value_or(json, "num_key_value_heads", otherwise);
}

// All but the positions.
LlamaConfig read_sizes(const Json& json, const std::string& type) {
  require_setting<std::string>(json, "hidden_act", "silu");
  require_setting(json, "attention_bias", false);
  require_setting(json, "mlp_bias", false);
  const int64_t heads = integer(json, "num_attention_heads");
  const FamilyDefaults* found = find_family(type);
  invariant(found != nullptr, "no family is ", type);
  const FamilyDefaults& family = *found;
  LlamaConfig config{.vocab = integer(json, "vocab_size"),
                     .context = value_or(json, "max_position_embeddings", family.context),
                     .layers = integer(json, "num_hidden_layers"),
                     .width = integer(json, "hidden_size"),
                     .heads = heads,
                     .kv_heads = kv_heads_of(json, heads, family),
                     .head_dim = value_or(json, "head_dim", family.head_dim),
                     .hidden = integer(json, "intermediate_size"),
                     .tied = value_or(json, "tie_word_embeddings", false),
                     .qkv_bias = type == "qwen2",
                     .qk_norm = type == "qwen3",
                     .window = window_of(json, type),
                     .norm_eps = value_or(json, "rms_norm_eps", 1e-6)};
  if (type == "mixtral") {
    config.experts = value_or<int64_t>(json, "num_local_experts", 8);
    config.top_k = value_or<int64_t>(json, "num_experts_per_tok", 2);
    config.balance_weight = value_or(json, "router_aux_loss_coef", 0.001);
  }
  return config;
}

LlamaConfig read_llama(const Json& json, const std::string& type) {
  LlamaConfig config = read_sizes(json, type);
  if (type == "mixtral") config.capacity_factor = 0;  // theirs leave no token out
  read_rope(json, config);
  return config;
}

// Mixtures of DeepSeek: shared experts are one network of their widths together.
LlamaConfig read_deepseek_sizes(const Json& json, const std::string& type) {
  require_setting<int64_t>(json, "moe_layer_freq", 1);
  LlamaConfig config = read_sizes(json, type);
  config.kv_heads = 0;
  config.experts = integer(json, "n_routed_experts");
  config.top_k = integer(json, "num_experts_per_tok");
  config.expert_hidden = integer(json, "moe_intermediate_size");
  config.shared_expert_hidden =
      value_or<int64_t>(json, "n_shared_experts", 0) * config.expert_hidden;
  config.dense_layers = value_or<int64_t>(json, "first_k_dense_replace", 0);
  config.q_rank = value_or<int64_t>(json, "q_lora_rank", 0);
  config.kv_rank = integer(json, "kv_lora_rank");
  config.nope_dim = integer(json, "qk_nope_head_dim");
  config.rope_dim = integer(json, "qk_rope_head_dim");
  config.value_dim = integer(json, "v_head_dim");
  return config;
}

// The files that hold the weights: one, or those that an index names.
std::vector<fs::path> weight_files(const fs::path& folder) {
  const fs::path whole = folder / "model.safetensors", index = whole.string() + ".index.json";
  if (fs::exists(whole)) return {whole};
  check(fs::exists(index), folder.string(),
        ": has no model.safetensors; weights in other formats are not read");
  std::ifstream stream(index);
  const Json json = Json::parse(stream, nullptr, false);
  check(json.is_object() && json.contains("weight_map") && json["weight_map"].is_object(),
        index.string(), ": has no \"weight_map\" of names to files");
  std::set<fs::path> files;
  for (const auto& [name, file] : json["weight_map"].items()) {
    check(
        file.is_string() && fs::path(file.get<std::string>()).filename() == file.get<std::string>(),
        index.string(), ": ", name, " lies in ", file.dump(), ", which is no file of the folder");
    files.insert(folder / file.get<std::string>());
  }
  return {files.begin(), files.end()};
}

// Tables that are computed, or stored twice: masks, rotary angles, and heads that are the table of tokens.
bool is_no_parameter(const std::string& name, bool tied) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with("rotary_emb.inv_freq") || (tied && name == "lm_head.weight");
}

NamedTensor from_gpt2(std::string name, const Tensor& x) {
  constexpr std::string_view kPrefix = "transformer.";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  // Their GPT-2 keeps projections as [in, out].
  const bool is_projection = x.rank() == 2 && name.starts_with("h.");
  return {std::move(name), is_projection ? transpose(x) : x};
}

// Mixtral keeps each expert's matrices apart, "model.layers.0.block_sparse_moe.experts.3.w1.weight"; ours are
// one table a layer and kind, "model.layers.0.mlp.gate_proj" [experts, hidden, width]. Files may hold them in
// any order.
class ExpertTables {
 public:
  explicit ExpertTables(int64_t experts) : experts_(static_cast<size_t>(experts)) {}

  // True where the tensor belongs to a mixture and was taken.
  bool take(const std::string& name, const Tensor& x) {
    constexpr std::string_view kPart = "block_sparse_moe.";
    const size_t part = name.find(kPart);
    if (part == std::string::npos) return false;
    const std::string layer = name.substr(0, part), rest = name.substr(part + kPart.size());
    if (rest == "gate.weight") {
      routers_.push_back({layer + "mlp.router.weight", x});
      return true;
    }
    for (size_t expert = 0; expert < experts_; ++expert) {
      for (const auto& [theirs, ours] : kKinds) {
        if (rest != join_text("experts.", expert, ".", theirs, ".weight")) continue;
        auto& table = tables_[join_text(layer, "mlp.", ours)];
        table.resize(experts_);
        table[expert] = x;
        return true;
      }
    }
    fail(name, ": is no part of a mixture of ", experts_, " experts");
  }

  void append_to(std::vector<NamedTensor>& values) {
    values.insert(values.end(), routers_.begin(), routers_.end());
    for (auto& [name, parts] : tables_) {
      for (size_t i = 0; i < parts.size(); ++i)
        check(parts[i].defined(), name, ": the weights of expert ", i, " are missing");
      values.push_back({name, stack(parts)});
      parts.clear();  // one table is held twice, not all of them
    }
  }

 private:
  static constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"w1", "gate_proj"}, {"w2", "down_proj"}, {"w3", "up_proj"}};

  size_t experts_;
  std::vector<NamedTensor> routers_;
  std::map<std::string, std::vector<Tensor>> tables_;  // by our name, an entry for each expert
};

}  // namespace

ModelConfig config_from_huggingface(std::string_view config_json) {
  const Json json = Json::parse(config_json, nullptr, false);
  check(json.is_object(), "config.json: must be a JSON object");
  const std::string type = family_of(json);
  if (type == "gpt2") return read_gpt2(json);
  for (const char* known : {"llama", "mistral", "mixtral", "qwen2", "qwen3"}) {
    if (type == known) return read_llama(json, type);
  }
  fail("config.json: model_type ", type,
       " is not supported; gpt2, llama, mistral, mixtral, qwen2 and qwen3 are");
}

ModelConfig shape_from_huggingface(std::string_view config_json) {
  const Json json = Json::parse(config_json, nullptr, false);
  check(json.is_object(), "config.json: must be a JSON object");
  const std::string type = family_of(json);
  if (type == "deepseek_v3" || type == "deepseek_v2") return read_deepseek_sizes(json, type);
  for (const char* known : {"llama", "mistral", "mixtral", "qwen2", "qwen3", "smollm3"}) {
    if (type == known) return read_sizes(json, type);
  }
  check(type == "gpt2", "config.json: model_type ", type,
        " is not known; gpt2, llama, mistral, mixtral, qwen2, qwen3, smollm3, deepseek_v2 "
        "and deepseek_v3 are");
  return read_gpt2(json);
}

std::vector<NamedTensor> read_huggingface_weights(const fs::path& folder,
                                                  const ModelConfig& config) {
  const bool gpt2 = std::holds_alternative<Gpt2Config>(config);
  const LlamaConfig llama = gpt2 ? LlamaConfig{} : std::get<LlamaConfig>(config);
  std::vector<NamedTensor> values;
  ExpertTables experts(llama.experts);
  for (const fs::path& path : weight_files(folder)) {
    const SafetensorsFile file(path);
    for (const SafetensorsFile::Entry& entry : file.entries()) {
      if (is_no_parameter(entry.name, gpt2 || llama.tied)) continue;
      Tensor x = file.load(entry.name);
      if (llama.experts > 0 && experts.take(entry.name, x)) continue;
      values.push_back(gpt2 ? from_gpt2(entry.name, x) : NamedTensor{entry.name, x});
    }
  }
  experts.append_to(values);
  return values;
}

}  // namespace brrr
