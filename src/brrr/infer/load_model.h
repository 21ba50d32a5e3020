// Models from files, ready to run: of our own checkpoints, of the runs that made them, and of folders in
// Hugging Face's layout.
//
//   LoadedModel loaded = load_model("runs/stories");
//   Tensor logits = loaded.model->logits(tokens);
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "brrr/nn/models.h"
#include "brrr/text/tokenizer.h"

namespace brrr::infer {

struct LoadedModel {
  ModelConfig config;
  std::unique_ptr<LanguageModel> model;
  std::shared_ptr<const text::Tokenizer> tokenizer;  // null where the folder has none
  std::filesystem::path source;                      // the folder that was read
};

struct LoadModelOptions {
  // In place of what the folder has; a file or folder of text/tokenizer_file.h. Empty: the folder's own.
  std::string tokenizer = {};
};

// `path` is a checkpoint (model.json and model.safetensors, sealed), a run (its best checkpoint by
// validation loss, else its newest), or a Hugging Face folder (config.json of one of
// huggingface_types()). Throws Error for anything else, for a model that these families do not cover, and for a
// damaged checkpoint, naming what is damaged and the whole one before it.
LoadedModel load_model(const std::filesystem::path& path, const LoadModelOptions& options = {});

// The checkpoints of a run, oldest first: checkpoints/step-00000100 and so on.
std::vector<std::filesystem::path> find_checkpoints(const std::filesystem::path& run);

}  // namespace brrr::infer
