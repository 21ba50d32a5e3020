#include "brrr/napkin/model_source.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "brrr/base/nearest_word.h"
#include "brrr/base/units.h"
#include "brrr/infer/huggingface.h"
#include "brrr/napkin/model_limits.h"
#include "brrr/train/parts.h"

namespace brrr {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  check(file.good(), "cannot read ", path.string());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Json json_of(const toml::node& node, std::string_view where) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  fail(where, " is neither a text, a number nor true or false");
}

// [model] with preset = "..." and changes, or family = "..." and sizes under the names of `brrr models --json`.
ModelConfig read_toml(const fs::path& path) {
  toml::table file;
  try {
    file = toml::parse(text_of(path));
  } catch (const toml::parse_error& error) {
    fail(path.string(), ", line ", error.source().begin.line, ": ", error.description());
  }
  const toml::table* model = file["model"].as_table();
  const toml::table& table = model ? *model : file;
  const auto preset = table["preset"].value<std::string>();
  check(preset || !table.contains("preset"), path.string(), ": preset is no text");
  const bool has_preset = preset && !preset->empty();
  Json json = has_preset ? Json::parse(to_json(model_preset(*preset))) : Json::object();
  for (const auto& [key, node] : table) {
    if (key.str() == "preset") continue;
    const Json value = json_of(node, join_text(path.string(), ": ", key.str()));
    check(!has_preset || key.str() != "family" || value == json["family"], path.string(),
          ": family is ", value.dump(), ", and the preset ", preset.value_or(""), " is of family ",
          json["family"].dump(), "; leave one of them out");
    json[std::string(key.str())] = value;
  }
  return model_from_json(json.dump());
}

ModelConfig read_json(const fs::path& path) {
  const std::string text = text_of(path);
  const Json json = Json::parse(text, nullptr, false);
  const bool is_ours = json.is_object() && json.contains("family");
  return is_ours ? model_from_json(text) : shape_from_huggingface(text);
}

// Classifiers of images have steps, but no tokens: 6 N D counts every weight once.
[[noreturn]] void refuse_images(const std::string& model) {
  const StepSpec spec = on_paper(named_step(model, {.batch = 1}));
  const TrainingParts parts = make_parts(spec);
  const Graph forward = parts.step->trace_forward(make_batch(spec));
  double flops = 0;
  for (const Node& node : forward.nodes) {
    if (node.op->kind == OpKind::contraction)
      flops += static_cast<double>(cost_of(forward, node).flops);
  }
  const int64_t count = parts.trained().parameter_count();
  const auto parameters = static_cast<double>(count);
  fail(fmt::format(
      "\"{}\" learns from images and not from tokens: its {} parameters take {:.3g} FLOPs an image "
      "forward, {:.3g} times 2 N{}; `brrr explain --model {}` and `brrr napkin verify --model {}` "
      "price its step",
      model, with_commas(count), flops, flops / (2 * parameters),
      model == "cnn" ? ", since a convolution uses its weights at every place" : "", model, model));
}

ModelConfig base_of(const std::string& model) {
  if (model == "cnn" || model == "mlp") refuse_images(model);
  const fs::path path(model);
  if (path.extension() == ".toml") return read_toml(path);
  if (path.extension() == ".json") return read_json(path);
  if (fs::exists(path / "config.json")) return read_json(path / "config.json");
  std::vector<std::string> names;
  for (std::string_view name : model_presets()) names.emplace_back(name);
  const std::string near = nearest_word(model, names);
  if (std::find(names.begin(), names.end(), model) == names.end() && !near.empty())
    fail("there is no model named \"", model, "\"; did you mean ", near,
         "? `brrr models` lists all");
  return model_preset(model);
}

int64_t require_size(std::string_view flag, const std::optional<int64_t>& size) {
  if (!size) fail("a free shape needs ", flag);
  return *size;
}

// A size that is given is a size: 0 does not stand for "as the model has it".
void check_flags(const ShapeOptions& shape) {
  const std::pair<const char*, const std::optional<int64_t>*> sizes[] = {
      {"--layers", &shape.layers},     {"--hidden", &shape.hidden},   {"--heads", &shape.heads},
      {"--kv-heads", &shape.kv_heads}, {"--ffn", &shape.ffn},         {"--vocab", &shape.vocab},
      {"--head-dim", &shape.head_dim}, {"--experts", &shape.experts}, {"--top-k", &shape.top_k}};
  for (const auto& [flag, size] : sizes) {
    const int64_t given = size->value_or(1),
                  most = size == &shape.layers ? kMostLayers : kLargestSize;
    check(given >= 1 && given <= most, flag, " ", given, " makes no sense; use 1 to ", most,
          ", or leave it out for the model's own");
  }
}

void set_sizes(LlamaConfig& config, const ShapeOptions& shape) {
  check(config.kv_rank == 0 || (!shape.kv_heads && !shape.head_dim && !shape.qkv_bias),
        "the model has latent attention, with neither key heads, a head's size nor biases: "
        "--kv-heads, --head-dim and --qkv-bias are not taken");
  config.kv_heads = shape.kv_heads.value_or(config.kv_heads);
  config.head_dim = shape.head_dim.value_or(config.head_dim);
  config.hidden = shape.ffn.value_or(config.hidden);
  config.experts = shape.experts.value_or(config.experts);
  config.top_k = shape.top_k.value_or(config.top_k);
  check(!shape.top_k || config.experts > 0, "--top-k ", config.top_k,
        ": the model has no experts to choose from; give --experts as well");
  check(!shape.ffn || config.experts == 0 || config.expert_hidden == 0 || config.dense_layers > 0,
        "--ffn ", config.hidden, ": all layers of the model have experts, of ",
        config.expert_hidden, " hidden units each");
  config.tied = config.tied || shape.tied;
  config.qkv_bias = config.qkv_bias || shape.qkv_bias;
}
void set_sizes(Gpt2Config& config, const ShapeOptions& shape) {
  check(!shape.kv_heads || *shape.kv_heads == config.heads,
        "gpt2 has as many key heads as heads, not ", shape.kv_heads.value_or(0));
  check(!shape.experts && !shape.top_k, "gpt2 has no experts; use --family llama");
  check(!shape.qkv_bias || config.bias, "--qkv-bias: the model has biases nowhere");
  config.head_dim = shape.head_dim.value_or(config.head_dim);
  config.hidden = shape.ffn.value_or(config.hidden);
}
void set_sizes(RecurrentLmConfig& config, const ShapeOptions& shape) {
  check(!shape.heads && !shape.kv_heads && !shape.head_dim && !shape.ffn && !shape.experts &&
            !shape.top_k && !shape.qkv_bias,
        "a recurrent model has neither heads, ffn nor experts");
  config.tied = config.tied || shape.tied;
}

}  // namespace

bool ShapeOptions::any() const {
  return !family.empty() || layers || hidden || heads || kv_heads || head_dim || ffn || vocab ||
         experts || top_k || tied || qkv_bias;
}

NamedModel find_model(const std::string& model, const ShapeOptions& shape) {
  NamedModel found{.name = model, .config = {}};
  check_flags(shape);
  if (model.empty()) {
    check(shape.family == "gpt2" || shape.family == "llama",
          "give --model, or a free shape: --family "
          "gpt2 or llama with --layers, --hidden and --heads (the family is \"",
          shape.family, "\")");
    const int64_t width = require_size("--hidden", shape.hidden);
    require_size("--layers", shape.layers), require_size("--heads", shape.heads);
    found.name = join_text(shape.family, " of a free shape");
    // Llama's rule: two thirds of 4 h, rounded up to 256.
    if (shape.family == "llama")
      found.config = LlamaConfig{.hidden = (8 * width / 3 + 255) / 256 * 256};
  } else {
    found.config = base_of(model);
    check(shape.family.empty() || shape.family == family_of(found.config), "--family ",
          shape.family, ": ", model, " is of family ", family_of(found.config),
          "; leave one of --family and --model out");
  }
  std::visit(
      [&](auto& c) {
        c.layers = shape.layers.value_or(c.layers);
        c.width = shape.hidden.value_or(c.width);
        c.vocab = shape.vocab.value_or(c.vocab);
        if constexpr (requires { c.heads; }) c.heads = shape.heads.value_or(c.heads);
        set_sizes(c, shape);
      },
      found.config);
  check_model(found.config);
  return found;
}

}  // namespace brrr
