#include "brrr/plan/model/model_source.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "brrr/base/nearest_word.h"
#include "brrr/base/units.h"
#include "brrr/infer/huggingface.h"
#include "brrr/plan/model/model_limits.h"
#include "brrr/train/setup.h"

namespace brrr::plan {
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
  return is_ours ? model_from_json(text) : infer::shape_from_huggingface(text);
}

// Classifiers of images have steps, but no tokens: 6 N D counts every weight once.
[[noreturn]] void refuse_images(const std::string& model) {
  const training::StepSpec spec = training::on_paper(training::named_step(model, {.batch = 1}));
  const training::TrainingParts parts = training::make_parts(spec);
  const graph::Graph forward = parts.step->trace_forward(training::make_batch(spec));
  double flops = 0;
  for (const graph::Node& node : forward.nodes) {
    if (node.op->kind == OpKind::contraction)
      flops += static_cast<double>(graph::cost_of(forward, node).flops);
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

std::vector<std::string_view> families_with(std::string_view field) {
  std::vector<std::string_view> names;
  for (const ModelFamily* family : model_families()) {
    if (family->has(field)) names.push_back(family->name);
  }
  return names;
}

// A family without key heads of its own has as many as heads; a model without heads has none of all this.
void check_settings(const ModelConfig& config, const ShapeOptions& shape) {
  const ModelShape own = shape_of(config);
  check(own.heads > 0 || (!shape.heads && !shape.kv_heads && !shape.head_dim && !shape.ffn &&
                          !shape.experts && !shape.top_k && !shape.qkv_bias),
        "a recurrent model has neither heads, ffn nor experts");
  check(!own.latent || (!shape.kv_heads && !shape.head_dim && !shape.qkv_bias),
        "the model has latent attention, with neither key heads, a head's size nor biases: "
        "--kv-heads, --head-dim and --qkv-bias are not taken");
  check(!shape.kv_heads || config.has("kv_heads") || *shape.kv_heads == own.heads,
        family_of(config), " has as many key heads as heads, not ", shape.kv_heads.value_or(0));
  check((!shape.experts && !shape.top_k) || config.has("experts"), family_of(config),
        " has no experts; use --family ", one_of(families_with("experts")));
  const bool has_bias = config.has("bias") && std::get<bool>(config.field("bias"));
  check(!shape.qkv_bias || config.has("qkv_bias") || has_bias,
        "--qkv-bias: the model has biases nowhere");
}

void check_ffn(const ModelConfig& config, const ShapeOptions& shape) {
  const ModelShape own = shape_of(config);
  check(!shape.top_k || own.experts > 0, "--top-k ", shape.top_k.value_or(0),
        ": the model has no experts to choose from; give --experts as well");
  check(!shape.ffn || own.experts == 0 || config.size("expert_hidden") == 0 || own.dense_layers > 0,
        "--ffn ", own.hidden, ": all layers of the model have experts, of ", own.expert_hidden,
        " hidden units each");
}

void set_sizes(ModelConfig& config, const ShapeOptions& shape) {
  const std::pair<const char*, const std::optional<int64_t>*> sizes[] = {
      {"layers", &shape.layers},     {"width", &shape.hidden},      {"vocab", &shape.vocab},
      {"heads", &shape.heads},       {"kv_heads", &shape.kv_heads}, {"hidden", &shape.ffn},
      {"head_dim", &shape.head_dim}, {"experts", &shape.experts},   {"top_k", &shape.top_k}};
  for (const auto& [field, size] : sizes) {
    if (*size) config.set_if_there(field, **size);
  }
  check_settings(config, shape);
  check_ffn(config, shape);
  if (shape.tied) config.set_if_there("tied", true);
  if (shape.qkv_bias) config.set_if_there("qkv_bias", true);
}

}  // namespace

bool ShapeOptions::any() const {
  return !family.empty() || layers || hidden || heads || kv_heads || head_dim || ffn || vocab ||
         experts || top_k || tied || qkv_bias;
}

std::vector<std::string_view> free_shape_families() {
  std::vector<std::string_view> names;
  for (const ModelFamily* family : model_families()) {
    if (family->free_shape) names.push_back(family->name);
  }
  return names;
}

NamedModel find_model(const std::string& model, const ShapeOptions& shape) {
  NamedModel found{.name = model, .config = {}};
  check_flags(shape);
  if (model.empty()) {
    const std::vector<std::string_view> families = free_shape_families();
    check(std::find(families.begin(), families.end(), shape.family) != families.end(),
          "give --model, or a free shape: --family ", one_of(families),
          " with --layers, --hidden and --heads (the family is \"", shape.family, "\")");
    const int64_t width = require_size("--hidden", shape.hidden);
    require_size("--layers", shape.layers), require_size("--heads", shape.heads);
    found.name = join_text(shape.family, " of a free shape");
    found.config = find_family(shape.family).free_shape(width);
  } else {
    found.config = base_of(model);
    check(shape.family.empty() || shape.family == family_of(found.config), "--family ",
          shape.family, ": ", model, " is of family ", family_of(found.config),
          "; leave one of --family and --model out");
  }
  set_sizes(found.config, shape);
  check_model(found.config);
  return found;
}

}  // namespace brrr::plan
