#include "brrr/infer/huggingface.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "brrr/io/safetensors.h"
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
  const int64_t width = integer(json, "n_embd");
  require_setting(json, "n_inner", 4 * width);
  return {.vocab = integer(json, "vocab_size"),
          .context = integer(json, "n_positions"),
          .layers = integer(json, "n_layer"),
          .heads = integer(json, "n_head"),
          .width = width};
}

double rope_base_of(const Json& json) {
  const Json scaling = is_set(json, "rope_scaling") ? json["rope_scaling"] : Json::object();
  const std::string kind = value_or<std::string>(scaling, "rope_type",
                                                 value_or<std::string>(scaling, "type", "default"));
  check(kind == "default", "config.json: rope_scaling of type ", kind,
        " is not supported; only plain rotary positions are");
  return value_or(json, "rope_theta", 10000.0);
}

// The window that all layers share; 0: none.
int64_t window_of(const Json& json, const std::string& type) {
  if (type == "mistral") return value_or<int64_t>(json, "sliding_window", 0);
  require_setting(json, "use_sliding_window", false);
  return 0;
}

enum class Use : uint8_t { load, plan };

LlamaConfig read_llama(const Json& json, const std::string& type, Use use) {
  require_setting<std::string>(json, "hidden_act", "silu");
  require_setting(json, "attention_bias", false);
  require_setting(json, "mlp_bias", false);
  const int64_t heads = integer(json, "num_attention_heads");
  return {
      .vocab = integer(json, "vocab_size"),
      .context = integer(json, "max_position_embeddings"),
      .layers = integer(json, "num_hidden_layers"),
      .width = integer(json, "hidden_size"),
      .heads = heads,
      .kv_heads = value_or(json, "num_key_value_heads", heads),
      .head_dim = value_or<int64_t>(json, "head_dim", 0),
      .hidden = integer(json, "intermediate_size"),
      .tied = value_or(json, "tie_word_embeddings", false),
      .qkv_bias = type == "qwen2",
      .qk_norm = type == "qwen3",
      .window = window_of(json, type),
      .rope_base = use == Use::load ? rope_base_of(json) : value_or(json, "rope_theta", 10000.0),
      .norm_eps = value_or(json, "rms_norm_eps", 1e-6)};
}

LlamaConfig read_mixtral(const Json& json) {
  LlamaConfig config = read_llama(json, "llama", Use::plan);
  config.window = value_or<int64_t>(json, "sliding_window", 0);
  config.experts = integer(json, "num_local_experts");
  config.top_k = integer(json, "num_experts_per_tok");
  return config;
}

// Mixtures of DeepSeek: shared experts are one network of their widths together.
LlamaConfig read_deepseek(const Json& json) {
  LlamaConfig config = read_llama(json, "llama", Use::plan);
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

}  // namespace

ModelConfig config_from_huggingface(std::string_view config_json) {
  const Json json = Json::parse(config_json, nullptr, false);
  check(json.is_object(), "config.json: must be a JSON object");
  const std::string type = value_or<std::string>(json, "model_type", "none");
  if (type == "gpt2") return read_gpt2(json);
  for (const char* known : {"llama", "mistral", "qwen2", "qwen3"}) {
    if (type == known) return read_llama(json, type, Use::load);
  }
  fail("config.json: model_type ", type,
       " is not supported; gpt2, llama, mistral, qwen2 and qwen3 are");
}

ModelConfig shape_from_huggingface(std::string_view config_json) {
  const Json json = Json::parse(config_json, nullptr, false);
  check(json.is_object(), "config.json: must be a JSON object");
  const std::string type = value_or<std::string>(json, "model_type", "none");
  if (type == "mixtral") return read_mixtral(json);
  if (type == "deepseek_v3" || type == "deepseek_v2") return read_deepseek(json);
  for (const char* known : {"llama", "mistral", "qwen2", "qwen3"}) {
    if (type == known) return read_llama(json, type, Use::plan);
  }
  check(type == "gpt2", "config.json: model_type ", type,
        " is not known; gpt2, llama, mistral, qwen2, qwen3, mixtral and deepseek_v3 are");
  return read_gpt2(json);
}

std::vector<NamedTensor> read_huggingface_weights(const fs::path& folder,
                                                  const ModelConfig& config) {
  const bool gpt2 = std::holds_alternative<Gpt2Config>(config);
  const bool tied = gpt2 || std::get<LlamaConfig>(config).tied;
  std::vector<NamedTensor> values;
  for (const fs::path& path : weight_files(folder)) {
    const SafetensorsFile file(path);
    for (const SafetensorsFile::Entry& entry : file.entries()) {
      if (is_no_parameter(entry.name, tied)) continue;
      std::string name = entry.name;
      if (gpt2 && name.starts_with("transformer."))
        name.erase(0, std::string("transformer.").size());
      Tensor x = file.load(entry.name);
      // Their GPT-2 keeps projections as [in, out].
      if (gpt2 && x.rank() == 2 && name.starts_with("h.")) x = transpose(x);
      values.push_back({std::move(name), x});
    }
  }
  return values;
}

}  // namespace brrr
