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
#include "brrr/napkin/model_step.h"

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
  const bool has_preset = preset && !preset->empty();
  Json json = has_preset ? Json::parse(to_json(model_preset(*preset))) : Json::object();
  for (const auto& [key, node] : table) {
    if (key.str() == "preset" || (has_preset && key.str() == "family")) continue;
    json[std::string(key.str())] = json_of(node, join_text(path.string(), ": ", key.str()));
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
  StepOptions options;
  options.batch = 1;
  options.device = Device::null();
  const ModelStep step(model, options);
  const Graph forward = step.trace_forward();
  double flops = 0;
  for (const Node& node : forward.nodes) {
    if (node.op->kind == OpKind::contraction)
      flops += static_cast<double>(cost_of(forward, node).flops);
  }
  const auto parameters = static_cast<double>(step.parameter_count());
  fail(fmt::format(
      "\"{}\" learns from images and not from tokens: its {} parameters take {:.3g} FLOPs an image "
      "forward, {:.3g} times 2 N{}; `brrr explain --model {}` and `brrr napkin verify --model {}` "
      "price its step",
      model, with_commas(step.parameter_count()), flops, flops / (2 * parameters),
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

void set_sizes(LlamaConfig& config, const ShapeOptions& shape) {
  config.kv_heads = shape.kv_heads.value_or(config.kv_heads);
  config.head_dim = shape.head_dim.value_or(config.head_dim);
  config.hidden = shape.ffn.value_or(config.hidden);
  config.experts = shape.experts.value_or(config.experts);
  config.top_k = shape.top_k.value_or(config.top_k);
  config.tied = config.tied || shape.tied;
  config.qkv_bias = config.qkv_bias || shape.qkv_bias;
}
void set_sizes(Gpt2Config& config, const ShapeOptions& shape) {
  check(!shape.kv_heads || *shape.kv_heads == config.heads,
        "gpt2 has as many key heads as heads, not ", shape.kv_heads.value_or(0));
  check(!shape.experts && !shape.top_k, "gpt2 has no experts; use --family llama");
  config.head_dim = shape.head_dim.value_or(config.head_dim);
  config.hidden = shape.ffn.value_or(config.hidden);
}
void set_sizes(RecurrentLmConfig&, const ShapeOptions& shape) {
  check(!shape.heads && !shape.kv_heads && !shape.head_dim && !shape.ffn && !shape.experts,
        "a recurrent model has neither heads, ffn nor experts");
}

void check_sizes(const ModelConfig& config) {
  const auto positive = [](std::string_view what, int64_t size) {
    check(size >= 1 && size <= 100'000'000, what, " of ", size,
          " makes no sense; use 1 to 100,000,000");
  };
  std::visit(
      [&](const auto& c) {
        positive("a vocabulary", c.vocab), positive("a width", c.width);
        check(c.layers >= 1 && c.layers <= 10'000, c.layers,
              " layers make no sense; use 1 to 10,000");
        if constexpr (requires { c.heads; }) {
          positive("heads", c.heads);
          const int64_t head = c.head_dim;
          check(head > 0 || c.width % c.heads == 0, c.heads, " heads do not divide a width of ",
                c.width, "; give --head-dim");
        }
        if constexpr (requires { c.kv_heads; })
          check(c.kv_heads == 0 || (c.kv_heads > 0 && c.heads % c.kv_heads == 0), c.kv_heads,
                " key heads do not divide ", c.heads, " heads");
        if constexpr (requires { c.hidden; })
          check(c.hidden >= 0, "ffn of ", c.hidden, " is negative");
        if constexpr (requires { c.experts; })
          check(c.experts == 0 || (c.top_k >= 1 && c.top_k <= c.experts), "a token cannot choose ",
                c.top_k, " of ", c.experts, " experts");
      },
      config);
}

}  // namespace

bool ShapeOptions::any() const {
  return !family.empty() || layers || hidden || heads || kv_heads || head_dim || ffn || vocab ||
         experts || top_k || tied || qkv_bias;
}

NamedModel find_model(const std::string& model, const ShapeOptions& shape) {
  NamedModel found{.name = model, .config = {}};
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
  check_sizes(found.config);
  return found;
}

}  // namespace brrr
