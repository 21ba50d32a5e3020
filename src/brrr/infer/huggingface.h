// Models in the layout of Hugging Face's transformers: config.json, and weights in one safetensors file or
// in several with an index.
#pragma once

#include <filesystem>
#include <string_view>

#include "brrr/nn/models.h"

namespace brrr {

// The model that a config.json describes. Throws Error for a type or a setting that the families here do
// not have, so that no model runs as one that it is not.
ModelConfig config_from_huggingface(std::string_view config_json);
// The sizes alone, for plans: scaled rotary positions, mixtures (mixtral) and latent attention (deepseek_v3) as
// well, which are not loaded.
ModelConfig shape_from_huggingface(std::string_view config_json);

// The weights by the names of our parameters. Throws Error naming the file that is missing or damaged.
std::vector<NamedTensor> read_huggingface_weights(const std::filesystem::path& folder,
                                                  const ModelConfig& config);

}  // namespace brrr
