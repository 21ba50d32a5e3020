// Which family a config.json belongs to; the families read and write it.
#include <algorithm>
#include <cctype>

#include "brrr/infer/huggingface.h"
#include "brrr/nn/huggingface_fields.h"

namespace brrr::infer {
namespace {

using huggingface::Document;
using huggingface::Json;

enum class Use : uint8_t { load, plan };

std::vector<std::string_view> types_for(Use use) {
  std::vector<std::string_view> names;
  for (const ModelFamily* family : model_families()) {
    for (const HuggingFaceType& type : family->huggingface.types) {
      if (type.loads || use == Use::plan) names.push_back(type.type);
    }
  }
  return names;
}

[[noreturn]] void refuse(std::string_view type, Use use) {
  fail("config.json: model_type ", type.empty() ? "none" : type,
       use == Use::load ? " is not supported; " : " is not known; ", one_of(types_for(use), "and"),
       " are");
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// "LlamaForCausalLM": the family's model with a head over tokens. Early files differ in capitals.
bool is_class_of(const HuggingFaceType& type, const std::string& name) {
  return std::any_of(type.class_names.begin(), type.class_names.end(),
                     [&](std::string_view each) { return lower(each) == lower(name); });
}

void check_classes(const HuggingFaceType& type, const std::string& given_type,
                   const std::vector<std::string>& classes) {
  for (const std::string& name : classes)
    check(is_class_of(type, name), "config.json: architectures names ", name, " beside ",
          given_type.empty() ? classes.front() : join_text("model_type ", given_type), "; only ",
          type.class_names.front(), " belongs to it");
}

// By "model_type", or where that is missing by "architectures"; where both are there they must agree.
ModelConfig read(std::string_view config_json, Use use) {
  Document document{
      .json = Json::parse(config_json, nullptr, false), .type = {}, .sizes_only = use == Use::plan};
  const Json& json = document.json;
  check(json.is_object(), "config.json: must be a JSON object");
  const auto classes = huggingface::value_or<std::vector<std::string>>(json, "architectures", {});
  const auto given = huggingface::value_or<std::string>(json, "model_type", "");
  for (const ModelFamily* family : model_families()) {
    for (const HuggingFaceType& type : family->huggingface.types) {
      const bool is_named = given.empty() ? !classes.empty() && is_class_of(type, classes.front())
                                          : type.type == given;
      if (!is_named) continue;
      check_classes(type, given, classes);
      if (!type.loads && use == Use::load) refuse(type.type, use);
      huggingface::require_setting(json, "add_cross_attention", false);
      huggingface::require_setting(json, "is_encoder_decoder", false);
      document.type = type.type;
      return family->huggingface.read(document);
    }
  }
  refuse(given, use);
}

}  // namespace

ModelConfig config_from_huggingface(std::string_view config_json) {
  return read(config_json, Use::load);
}

ModelConfig shape_from_huggingface(std::string_view config_json) {
  return read(config_json, Use::plan);
}

std::string config_to_huggingface(const ModelConfig& config) {
  const auto write = config.family().huggingface.write;
  if (!write) fail("transformers has no class for models of family ", family_of(config));
  return write(config);
}

std::vector<std::string_view> huggingface_types() { return types_for(Use::load); }

}  // namespace brrr::infer
