// A family of language models as one entry of a registry: its configuration with named fields, its module, its
// presets, its sizes for the planner, and Hugging Face's files both ways. Training, inference, the planner and
// the program ask the family and know no configuration by its type.
//
// A configuration is an aggregate with
//   static const ModelFamily& family();      // what define_family made, with what the family adds
//   int64_t parameter_count() const;         // exact, by formula
//   ModelShape shape() const;
//   bool operator==(const Config&) const = default;
// Fields of these names mean the same in all families, and the first five are in all of them:
//   vocab, context, layers, width, dropout; heads, kv_heads, head_dim, hidden, tied, window,
//   experts, top_k, expert_hidden, shared_expert_hidden, dense_layers, capacity_factor.
#pragma once

#include <any>
#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "brrr/nn/init.h"
#include "brrr/nn/language_model.h"

namespace brrr {

struct ModelFamily;

// What plans need to know of a model, the same for all families.
struct ModelShape {
  int64_t layers = 0, width = 0;
  int64_t heads = 0;  // 0: no attention; the model runs token by token
  int64_t kv_heads = 0;
  int64_t hidden = 0;  // units of a layer's FFN; 0: it has none
  int64_t vocab = 0;
  double pair_width = 0;  // (q head + v head) / 2 * heads: a d, where both heads are alike

  int64_t context = 0, head_dim = 0;
  int64_t learned_positions = 0;  // rows of a table of positions; 0: none
  bool rotary = false;            // rotary positions and RMS norms
  bool gated = false;             // the FFN has three matrices, not two
  bool tied = false;              // the head is the table of tokens
  bool latent = false;            // attention through a latent vector (MLA)
  // Sliding windows of the layers in turn, 0 for a layer that sees all: {4096, 0} alternates. Empty: all see all.
  std::vector<int64_t> windows = {};

  int64_t experts = 0, top_k = 0;  // 0 experts: none
  int64_t expert_hidden = 0, shared_expert_hidden = 0;
  int64_t dense_layers = 0;  // first layers of a mixture that have no experts

  // Elements, in floating point: sizes are checked for overflow by these.
  double mixer_matrices = 0;   // of a layer's attention projections or recurrent gates
  double mixer_elements = 0;   // that these make of a token
  double layer_vectors = 0;    // biases and norms of a layer
  double outside_vectors = 0;  // norms and biases outside the layers
  double cache_elements = 0;   // that a layer keeps of a token while decoding

  // After so many layers the kinds of layers repeat.
  int64_t period() const { return windows.empty() ? 1 : static_cast<int64_t>(windows.size()); }
};

// Attention projections with h = width, q = heads * head_dim, kv = kv_heads * head_dim: fills in pair_width and the
// mixer's elements. Sizes must be set before.
void set_grouped_attention(ModelShape& shape);

using FieldValue = std::variant<bool, int64_t, double, std::string>;

// One setting of a configuration by its name in JSON and TOML.
struct ModelField {
  std::string_view name;
  FieldValue (*get)(const std::any& config, const std::any& member) = nullptr;
  void (*set)(std::any& config, const std::any& member, const FieldValue& value) = nullptr;
  std::any member;                               // pointer to member
  std::span<const std::string_view> words = {};  // of a choice, in the order of its enumerators
};

template <typename Config>
concept FamilyConfig = requires(const Config& config) {
  { Config::family() } -> std::same_as<const ModelFamily&>;
  { config.parameter_count() } -> std::same_as<int64_t>;
  { config.shape() } -> std::same_as<ModelShape>;
};

// The configuration of any family, a value.
class ModelConfig {
 public:
  ModelConfig();  // GPT-2 of 124M parameters
  template <typename Config>
  requires FamilyConfig<Config> ModelConfig(Config config)
      : family_(&Config::family()), value_(std::move(config)) {}

  const ModelFamily& family() const { return *family_; }
  ModelShape shape() const;

  // By type, for code that belongs to a family. Null where the configuration is of another.
  template <typename Config>
  const Config* get_if() const {
    return std::any_cast<Config>(&value_);
  }
  template <typename Config>
  Config* get_if() {
    return std::any_cast<Config>(&value_);
  }
  template <typename Config>
  const Config& get() const& {
    if (const Config* found = get_if<Config>()) return *found;
    refuse_type(Config::family());
  }
  template <typename Config>
  Config& get() & {
    if (Config* found = get_if<Config>()) return *found;
    refuse_type(Config::family());
  }
  template <typename Config>
  Config get() && {
    return std::move(get<Config>());
  }

  // By the name of a field, for code that takes any family.
  bool has(std::string_view field) const;
  FieldValue field(std::string_view name) const;  // throws Error where there is none
  int64_t size(std::string_view field, int64_t otherwise = 0) const;  // a whole number
  void set(std::string_view field, const FieldValue& value);
  bool set_if_there(std::string_view field, const FieldValue& value);  // whether it was

  bool operator==(const ModelConfig& other) const;

 private:
  [[noreturn]] void refuse_type(const ModelFamily& wanted) const;
  const ModelField* find(std::string_view name) const;

  const ModelFamily* family_;
  std::any value_;
};

struct ModelPreset {
  std::string_view name;
  ModelConfig config;
};

namespace huggingface {
struct Document;  // a parsed config.json (nn/huggingface_fields.h)
}

// A kind of config.json that a family reads.
struct HuggingFaceType {
  std::string_view type;                      // "model_type"
  std::vector<std::string_view> class_names;  // "architectures"; the first is the usual one
  bool loads = true;                          // false: sizes alone are read, for plans
};

struct HuggingFaceMapping {
  std::vector<HuggingFaceType> types = {};
  ModelConfig (*read)(const huggingface::Document& document) = nullptr;
  // config.json of the model; throws Error where their classes have no such model. Null: there is no class.
  std::string (*write)(const ModelConfig& config) = nullptr;
  // Our parameters from theirs. Null: names and layouts are the same.
  std::vector<NamedTensor> (*weights)(const ModelConfig& config,
                                      std::vector<NamedTensor> theirs) = nullptr;
};

struct ModelFamily {
  std::string_view name;
  std::vector<ModelField> fields;
  ModelConfig (*defaults)() = nullptr;
  std::unique_ptr<LanguageModel> (*make)(const ModelConfig& config, Random& random) = nullptr;
  int64_t (*parameter_count)(const ModelConfig& config) = nullptr;
  int64_t (*active_parameter_count)(const ModelConfig& config) =
      nullptr;  // that a token goes through
  bool (*equal)(const ModelConfig& a, const ModelConfig& b) = nullptr;
  ModelShape (*shape)(const ModelConfig& config) = nullptr;

  // What a family may add to define_family.
  const std::vector<ModelPreset>& (*presets)() = nullptr;
  // The family's usual proportions at a width: of a model trained from scratch, and of a plan without a preset.
  // Null: the defaults, and no plans without a preset.
  ModelConfig (*from_scratch)(int64_t width) = nullptr;
  ModelConfig (*free_shape)(int64_t width) = nullptr;
  // Throws Error for sizes that make no model of this family, beyond what holds for all.
  void (*check_sizes)(const ModelConfig& config) = nullptr;
  HuggingFaceMapping huggingface = {};

  bool has(std::string_view field) const;
};

template <typename Config, typename Value>
ModelField model_field(std::string_view name, Value Config::*member,
                       std::span<const std::string_view> words = {});

// A family of `Config` and of `Model`, which is made from (const Config&, Random&). Throws Error where a field that all
// families have is missing.
template <FamilyConfig Config, typename Model>
ModelFamily define_family(std::string_view name, std::vector<ModelField> fields);

// ---- the registry ------------------------------------------------------------------------------------------------

// Built-in families in the order of nn/families/families.cpp, then those that were registered.
std::vector<const ModelFamily*> model_families();
// Throws Error with the list on an unknown name.
const ModelFamily& find_family(std::string_view name);
// Adds a family of your own program; it must outlive all use. Not while other threads use models. Throws Error where
// the name, or that of a preset or a Hugging Face type, is taken.
void register_family(const ModelFamily& family);

// A preset of one family; throws Error with its list on any other name.
const ModelConfig& find_preset(const ModelFamily& family, std::string_view name);

// ---- sizes that a model may have ---------------------------------------------------------------------------------

inline constexpr int64_t kLargestSize = 100'000'000;  // of one dimension, and of a sequence
inline constexpr int64_t kMostLayers = 10'000;
void check_range(std::string_view what, int64_t size, int64_t least, int64_t most);

// "gpt2, llama or recurrent".
std::string one_of(const std::vector<std::string_view>& names, std::string_view conjunction = "or");

// ---- definitions -------------------------------------------------------------------------------------------------

void check_fields(const ModelFamily& family);

template <typename Config, typename Value>
ModelField model_field(std::string_view name, Value Config::*member,
                       std::span<const std::string_view> words) {
  using Member = Value Config::*;
  ModelField made{.name = name, .member = member, .words = words};
  made.get = [](const std::any& config, const std::any& place) -> FieldValue {
    const Value& value = std::any_cast<const Config&>(config).*std::any_cast<Member>(place);
    if constexpr (std::is_enum_v<Value>) {
      return static_cast<int64_t>(value);
    } else {
      return value;
    }
  };
  made.set = [](std::any& config, const std::any& place, const FieldValue& given) {
    Value& value = std::any_cast<Config&>(config).*std::any_cast<Member>(place);
    if constexpr (std::is_enum_v<Value>) {
      value = static_cast<Value>(std::get<int64_t>(given));
    } else {
      value = std::get<Value>(given);
    }
  };
  return made;
}

template <FamilyConfig Config, typename Model>
ModelFamily define_family(std::string_view name, std::vector<ModelField> fields) {
  ModelFamily family{.name = name, .fields = std::move(fields)};
  family.defaults = [] { return ModelConfig(Config{}); };
  family.make = [](const ModelConfig& config, Random& random) -> std::unique_ptr<LanguageModel> {
    return std::make_unique<Model>(config.get<Config>(), random);
  };
  family.parameter_count = [](const ModelConfig& config) {
    return config.get<Config>().parameter_count();
  };
  family.active_parameter_count = [](const ModelConfig& config) {
    const auto& own = config.get<Config>();
    if constexpr (requires { own.active_parameter_count(); }) {
      return own.active_parameter_count();
    } else {
      return own.parameter_count();
    }
  };
  family.equal = [](const ModelConfig& a, const ModelConfig& b) {
    const auto *x = a.get_if<Config>(), *y = b.get_if<Config>();
    return x && y && *x == *y;
  };
  family.shape = [](const ModelConfig& config) { return config.get<Config>().shape(); };
  check_fields(family);
  return family;
}

}  // namespace brrr
