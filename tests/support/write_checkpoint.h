// A checkpoint as training writes it, with a tokenizer of bytes.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "brrr/io/safetensors.h"
#include "brrr/io/sealed_folder.h"
#include "brrr/nn/models.h"
#include "brrr/text/tokenizer_file.h"

namespace brrr {

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// 256 bytes and the end of a text.
inline std::unique_ptr<text::Tokenizer> byte_tokenizer() {
  return text::make_tokenizer(
      text::define_byte_tokenizer(std::vector<std::string>{std::string(text::kEndOfText)}));
}

inline std::filesystem::path write_checkpoint(const std::filesystem::path& run,
                                              const std::string& name, const LanguageModel& model,
                                              const ModelConfig& config) {
  SealedFolderWriter folder(run / "checkpoints" / name);
  write_text(folder.path() / "model.json", to_json(config));
  save_safetensors(folder.path() / "model.safetensors", model.state_dict());
  text::save_tokenizer(*byte_tokenizer(), (folder.path() / "tokenizer.json").string(),
                       text::FileForm::brrr);
  folder.commit();
  return run / "checkpoints" / name;
}

}  // namespace brrr
