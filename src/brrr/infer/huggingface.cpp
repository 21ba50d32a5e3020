#include "brrr/infer/huggingface.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "brrr/io/safetensors.h"

namespace brrr::infer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// The files that hold the weights: one, or those that an index names.
std::vector<fs::path> weight_files(const fs::path& folder) {
  const fs::path whole = folder / "model.safetensors", index = whole.string() + ".index.json";
  if (fs::exists(whole)) return {whole};
  check(fs::exists(index), folder.string(),
        ": has no model.safetensors; weights in other formats are not read");
  std::ifstream stream(index);
  const Json json = Json::parse(stream, nullptr, false);
  check(json.is_object() && json.contains("weight_map") && json["weight_map"].is_object(),
        index.string(), ": has no \"weight_map\" of names to files");
  std::set<fs::path> files;
  for (const auto& [name, file] : json["weight_map"].items()) {
    check(
        file.is_string() && fs::path(file.get<std::string>()).filename() == file.get<std::string>(),
        index.string(), ": ", name, " lies in ", file.dump(), ", which is no file of the folder");
    files.insert(folder / file.get<std::string>());
  }
  return {files.begin(), files.end()};
}

// Tables that are computed, or stored twice: masks, rotary angles, and heads that are the table of tokens.
bool is_no_parameter(const std::string& name, bool tied) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with("rotary_emb.inv_freq") || (tied && name == "lm_head.weight");
}

}  // namespace

std::vector<NamedTensor> read_huggingface_weights(const fs::path& folder,
                                                  const ModelConfig& config) {
  const bool is_tied = shape_of(config).tied;
  std::vector<NamedTensor> values;
  for (const fs::path& path : weight_files(folder)) {
    const SafetensorsFile file(path);
    for (const SafetensorsFile::Entry& entry : file.entries()) {
      if (!is_no_parameter(entry.name, is_tied))
        values.push_back({entry.name, file.load(entry.name)});
    }
  }
  const HuggingFaceMapping& mapping = config.family().huggingface;
  return mapping.weights ? mapping.weights(config, std::move(values)) : values;
}

}  // namespace brrr::infer
