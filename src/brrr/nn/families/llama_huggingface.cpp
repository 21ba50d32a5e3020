// Llama and its relatives in transformers: one configuration here, a class each there.
#include <map>

#include "brrr/nn/families/llama.h"
#include "brrr/nn/huggingface_fields.h"
#include "brrr/ops/view/join.h"

namespace brrr {
namespace {

using huggingface::ClassDefaults;
using huggingface::Json;
using huggingface::whole;

struct Kind {
  std::string_view type;
  ClassDefaults defaults;
};
constexpr Kind kKinds[] = {
    {"llama", {.context = 2048}},
    {"mistral", {.context = 131072, .kv_heads = 8, .window = 4096}},
    {"mixtral", {.context = 131072, .kv_heads = 8, .rope_base = 1e6, .norm_eps = 1e-5}},
    {"qwen2", {.context = 32768, .kv_heads = 32}},
    {"smollm3", {.context = 32768, .kv_heads = 4, .tied = true, .rope_base = 2e6}},
    {"deepseek_v2", {.context = 2048}},
    {"deepseek_v3", {.context = 4096}}};

// All but the positions, the keys and the experts.
LlamaConfig read_common(const Json& json, const ClassDefaults& defaults) {
  huggingface::require_setting<std::string>(json, "hidden_act", "silu");
  huggingface::require_setting(json, "attention_bias", false);
  huggingface::require_setting(json, "mlp_bias", false);
  LlamaConfig config;
  huggingface::read_sizes(json, defaults, config);
  config.tied = huggingface::value_or(json, "tie_word_embeddings", defaults.tied);
  return config;
}

// The window that all layers share; 0: none.
int64_t read_window(const Json& json, const Kind& kind) {
  int64_t window = 0;
  if (kind.type == "mistral" || kind.type == "mixtral")
    window =
        whole(json, {.key = "sliding_window", .if_absent = kind.defaults.window, .if_null = 0});
  else
    huggingface::require_setting(json, "use_sliding_window", false);
  huggingface::require_layer_types(json, {window > 0 ? "sliding_attention" : "full_attention"});
  return window;
}

void check_choices(const LlamaConfig& config) {
  check(config.top_k <= config.experts, "config.json: num_experts_per_tok is ", config.top_k,
        " by default, of ", config.experts, " experts");
}

LlamaConfig read_llama_sizes(const Json& json, const Kind& kind) {
  LlamaConfig config = read_common(json, kind.defaults);
  config.kv_heads = huggingface::read_kv_heads(json, kind.defaults, config.heads);
  config.head_dim = huggingface::read_head_dim(json, kind.defaults);
  config.qkv_bias = kind.type == "qwen2";
  config.window = read_window(json, kind);
  if (kind.type != "mixtral") return config;
  config.experts = whole(json, {.key = "num_local_experts", .if_absent = 8});
  config.top_k =
      whole(json, {.key = "num_experts_per_tok", .most = config.experts, .if_absent = 2});
  check_choices(config);
  config.balance_weight = huggingface::value_or(json, "router_aux_loss_coef", 0.001);
  return config;
}

// Mixtures of DeepSeek: shared experts are one network of their widths together. Of V2 there are two classes, with
// other experts by default, so that V2's files must say how many there are.
LlamaConfig read_deepseek_sizes(const Json& json, const Kind& kind) {
  const bool is_v3 = kind.type == "deepseek_v3";
  const auto of_v3 = [&](int64_t size) { return is_v3 ? std::optional(size) : std::nullopt; };
  whole(json, {.key = "moe_layer_freq", .most = 1, .if_absent = 1, .if_null = 1});
  LlamaConfig config = read_common(json, kind.defaults);
  const int64_t kv_heads = whole(
      json, {.key = "num_key_value_heads", .if_absent = config.heads, .if_null = config.heads});
  check(kv_heads == config.heads, "config.json: num_key_value_heads is ", kv_heads,
        "; latent attention has as many as heads, ", config.heads);
  config.experts = whole(json, {.key = "n_routed_experts", .if_absent = of_v3(256)});
  config.top_k =
      whole(json, {.key = "num_experts_per_tok", .most = config.experts, .if_absent = of_v3(8)});
  check_choices(config);
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

ModelConfig read(const huggingface::Document& document) {
  const Kind* kind = kKinds;
  while (kind->type != document.type) ++kind;
  if (kind->type.starts_with("deepseek")) return read_deepseek_sizes(document.json, *kind);
  LlamaConfig config = read_llama_sizes(document.json, *kind);
  if (document.sizes_only) return config;
  if (kind->type == "mixtral") config.capacity_factor = 0;  // theirs leave no token out
  huggingface::set_rope(huggingface::read_rope(document.json, kind->defaults), config);
  return config;
}

// The class that has the model: a mixture is Mixtral's, biases are Qwen2's, a window Mistral's.
std::string write(const ModelConfig& given) {
  const auto& c = given.get<LlamaConfig>();
  check(c.kv_rank == 0 && !c.qk_norm && c.dense_layers == 0 && c.shared_expert_hidden == 0 &&
            c.expert_hidden == 0,
        "llama: models with latent attention, norms of queries and keys, shared or dense experts "
        "are not written as config.json");
  check(static_cast<int>(c.experts > 0) + static_cast<int>(c.qkv_bias) <= 1 &&
            (!c.qkv_bias || c.window == 0),
        "llama: no class of transformers has biases of q, k and v beside experts or a window");
  const bool is_mixture = c.experts > 0;
  const auto [type, name] = is_mixture     ? std::pair("mixtral", "MixtralForCausalLM")
                            : c.qkv_bias   ? std::pair("qwen2", "Qwen2ForCausalLM")
                            : c.window > 0 ? std::pair("mistral", "MistralForCausalLM")
                                           : std::pair("llama", "LlamaForCausalLM");
  Json json = huggingface::written_sizes(c, type, name);
  json.update({{"hidden_act", "silu"},
               {"tie_word_embeddings", c.tied},
               {"sliding_window", c.window > 0 ? Json(c.window) : Json()},
               {"attention_dropout", c.attention_dropout}});
  if (is_mixture)
    json.update({{"num_local_experts", c.experts},
                 {"num_experts_per_tok", c.top_k},
                 {"router_aux_loss_coef", c.balance_weight}});
  huggingface::write_rope({.base = c.rope_base, .scaling = c.rope_scaling()}, json);
  return json.dump(1);
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
      for (const auto& [theirs, ours] : kMatrices) {
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
  static constexpr std::pair<std::string_view, std::string_view> kMatrices[] = {
      {"w1", "gate_proj"}, {"w2", "down_proj"}, {"w3", "up_proj"}};

  size_t experts_;
  std::vector<NamedTensor> routers_;
  std::map<std::string, std::vector<Tensor>> tables_;  // by our name, an entry for each expert
};

std::vector<NamedTensor> weights_of(const ModelConfig& config, std::vector<NamedTensor> theirs) {
  const int64_t experts = config.get<LlamaConfig>().experts;
  if (experts == 0) return theirs;
  std::vector<NamedTensor> values;
  ExpertTables tables(experts);
  for (NamedTensor& value : theirs) {
    if (!tables.take(value.name, value.tensor)) values.push_back(value);
    value.tensor = Tensor();  // the tables alone hold it now
  }
  tables.append_to(values);
  return values;
}

}  // namespace

HuggingFaceMapping llama_huggingface() {
  return {.types = {{"llama", {"LlamaForCausalLM"}},
                    {"mistral", {"MistralForCausalLM"}},
                    {"mixtral", {"MixtralForCausalLM"}},
                    {"qwen2", {"Qwen2ForCausalLM"}},
                    {"smollm3", {"SmolLM3ForCausalLM"}, false},
                    {"deepseek_v2", {"DeepseekV2ForCausalLM"}, false},
                    {"deepseek_v3", {"DeepseekV3ForCausalLM"}, false}},
          .read = read,
          .write = write,
          .weights = weights_of};
}

}  // namespace brrr
