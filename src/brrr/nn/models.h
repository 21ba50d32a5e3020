// The language models by name: presets, sizes without allocating, configurations as JSON, and making
// any of them behind the common interface. The families are in nn/families/.
#pragma once

#include <memory>

#include "brrr/nn/families/gpt2.h"
#include "brrr/nn/families/llama.h"
#include "brrr/nn/families/recurrent_lm.h"
#include "brrr/nn/model_family.h"

namespace brrr {

// "gpt2-124m", "llama3-8b", "lstm-tiny", ...; throws Error with the list on any other name.
ModelConfig model_preset(std::string_view name);
std::vector<std::string_view> model_presets();

std::string_view family_of(const ModelConfig& config);
ModelShape shape_of(const ModelConfig& config);
int64_t parameter_count(const ModelConfig& config);  // exact, by formula
int64_t active_parameter_count(
    const ModelConfig& config);  // of the experts only those of one token
int64_t vocab_of(const ModelConfig& config);
int64_t context_of(const ModelConfig& config);

// {"family": "gpt2", "vocab": 50257, ...}: every field. Fields left out keep their defaults; an unknown
// family or field is an Error that lists those there are.
std::string to_json(const ModelConfig& config);
ModelConfig model_from_json(std::string_view text);

std::unique_ptr<LanguageModel> make_model(const ModelConfig& config, Random& random);

}  // namespace brrr
