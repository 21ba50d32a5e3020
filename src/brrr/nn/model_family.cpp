#include "brrr/nn/model_family.h"

#include <algorithm>

#include "brrr/nn/families/families.h"
#include "brrr/nn/families/gpt2.h"

namespace brrr {
namespace {

std::vector<const ModelFamily*>& registry() {
  static std::vector<const ModelFamily*> families = built_in_families();
  return families;
}

std::vector<std::string_view> preset_names(const ModelFamily& family) {
  std::vector<std::string_view> names;
  if (!family.presets) return names;
  for (const ModelPreset& preset : family.presets()) names.push_back(preset.name);
  return names;
}

std::vector<std::string_view> type_names(const ModelFamily& family) {
  std::vector<std::string_view> names;
  for (const HuggingFaceType& type : family.huggingface.types) names.push_back(type.type);
  return names;
}

void check_names(std::string_view what, const ModelFamily& known, const ModelFamily& added,
                 std::vector<std::string_view> (*names_of)(const ModelFamily&)) {
  const std::vector<std::string_view> taken = names_of(known);
  for (std::string_view name : names_of(added))
    check(std::find(taken.begin(), taken.end(), name) == taken.end(), "family ", added.name, ": ",
          what, " \"", name, "\" belongs to family ", known.name, "; choose another name");
}

}  // namespace

void set_grouped_attention(ModelShape& shape) {
  const auto h = static_cast<double>(shape.width), d = static_cast<double>(shape.head_dim);
  const double q = static_cast<double>(shape.heads) * d,
               kv = static_cast<double>(shape.kv_heads) * d;
  shape.pair_width = q;
  shape.mixer_matrices = 2 * h * (q + kv);
  shape.mixer_elements = q + 2 * kv;
  shape.cache_elements = 2 * kv;
}

// ---- ModelConfig -------------------------------------------------------------------------------------------------

ModelConfig::ModelConfig() : ModelConfig(Gpt2Config{}) {}

ModelShape ModelConfig::shape() const { return family_->shape(*this); }

void ModelConfig::refuse_type(const ModelFamily& wanted) const {
  fail("the model is of family ", family_->name, ", not ", wanted.name);
}

const ModelField* ModelConfig::find(std::string_view name) const {
  for (const ModelField& field : family_->fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

bool ModelConfig::has(std::string_view field) const { return find(field) != nullptr; }

FieldValue ModelConfig::field(std::string_view name) const {
  const ModelField* found = find(name);
  if (!found) fail("a model of family ", family_->name, " has no setting \"", name, "\"");
  return found->get(value_, found->member);
}

int64_t ModelConfig::size(std::string_view field, int64_t otherwise) const {
  return has(field) ? std::get<int64_t>(this->field(field)) : otherwise;
}

void ModelConfig::set(std::string_view field, const FieldValue& value) {
  check(set_if_there(field, value), "a model of family ", family_->name, " has no setting \"",
        field, "\"");
}

bool ModelConfig::set_if_there(std::string_view field, const FieldValue& value) {
  const ModelField* found = find(field);
  if (found) found->set(value_, found->member, value);
  return found != nullptr;
}

bool ModelConfig::operator==(const ModelConfig& other) const {
  return family_ == other.family_ && family_->equal(*this, other);
}

// ---- the registry ------------------------------------------------------------------------------------------------

bool ModelFamily::has(std::string_view field) const {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const ModelField& each) { return each.name == field; });
}

void check_fields(const ModelFamily& family) {
  for (std::string_view name : {"vocab", "context", "layers", "width", "dropout"})
    check(family.has(name), "family ", family.name, ": has no field \"", name,
          "\", which all families have");
}

std::vector<const ModelFamily*> model_families() { return registry(); }

const ModelFamily& find_family(std::string_view name) {
  std::vector<std::string_view> known;
  for (const ModelFamily* family : registry()) {
    if (family->name == name) return *family;
    known.push_back(family->name);
  }
  fail("there is no family \"", name, "\"; use ", one_of(known));
}

void register_family(const ModelFamily& family) {
  for (const ModelFamily* known : registry()) {
    check(known->name != family.name, "there is a family \"", family.name,
          "\" already; choose another name");
    check_names("the preset", *known, family, preset_names);
    check_names("the Hugging Face type", *known, family, type_names);
  }
  registry().push_back(&family);
}

const ModelConfig& find_preset(const ModelFamily& family, std::string_view name) {
  std::string known;
  for (const ModelPreset& preset : family.presets()) {
    if (preset.name == name) return preset.config;
    known += join_text(known.empty() ? "" : ", ", preset.name);
  }
  fail("there is no model named \"", name, "\"; use one of ", known);
}

void check_range(std::string_view what, int64_t size, int64_t least, int64_t most) {
  check(size >= least && size <= most, what, " of ", size, " makes no sense; use ", least, " to ",
        most);
}

std::string one_of(const std::vector<std::string_view>& names, std::string_view conjunction) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_last = i + 1 == names.size();
    text += join_text(i == 0 ? "" : is_last ? join_text(" ", conjunction, " ") : ", ", names[i]);
  }
  return text;
}

}  // namespace brrr
