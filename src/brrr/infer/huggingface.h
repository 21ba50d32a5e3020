// Models in the layout of Hugging Face's transformers: config.json, and weights in one safetensors file or
// in several with an index.
#pragma once

#include <filesystem>
#include <string_view>

#include "brrr/nn/models.h"

namespace brrr::infer {

// The model that a config.json describes. Throws Error for a type or a setting that the families here do
// not have, so that no model runs as one that it is not.
ModelConfig config_from_huggingface(std::string_view config_json);
// The sizes alone, for plans: of types that are not loaded as well (smollm3, deepseek_v3), and of any positions.
ModelConfig shape_from_huggingface(std::string_view config_json);
// The config.json of a model; throws Error where transformers has no class for it.
std::string config_to_huggingface(const ModelConfig& config);
// "gpt2", "llama", "mistral", ...: what "model_type" may be of a model that is loaded.
std::vector<std::string_view> huggingface_types();

// The weights by the names of our parameters. Throws Error naming the file that is missing or damaged.
std::vector<NamedTensor> read_huggingface_weights(const std::filesystem::path& folder,
                                                  const ModelConfig& config);

}  // namespace brrr::infer
