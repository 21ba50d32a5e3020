// Which model a question is about: a preset, a file, a free shape, or a bare number of parameters.
#pragma once

#include <optional>
#include <string>

#include "brrr/nn/models.h"

namespace brrr::plan {

// Sizes in place of the model's own, or a whole shape where `family` is given without a model.
struct ShapeOptions {
  std::string family;  // of free_shape_families()
  std::optional<int64_t> layers, hidden, heads, kv_heads, head_dim, ffn, vocab, experts, top_k;
  bool tied = false, qkv_bias = false;
  bool any() const;
};

// Families that have models of any sizes without a preset.
std::vector<std::string_view> free_shape_families();

struct NamedModel {
  std::string name;
  ModelConfig config;
};

// A preset ("llama3-8b"), a TOML file with a [model] table (a preset with changes, or a family with sizes), a
// config.json of Hugging Face or its folder. Throws Error on anything else, with the nearest preset.
NamedModel find_model(const std::string& model, const ShapeOptions& shape = {});

}  // namespace brrr::plan
