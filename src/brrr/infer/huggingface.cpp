#include "brrr/infer/huggingface.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "brrr/io/safetensors.h"
#include "brrr/ops/join.h"
#include "brrr/ops/views.h"

namespace brrr {
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

NamedTensor from_gpt2(std::string name, const Tensor& x) {
  constexpr std::string_view kPrefix = "transformer.";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  // Their GPT-2 keeps projections as [in, out].
  const bool is_projection = x.rank() == 2 && name.starts_with("h.");
  return {std::move(name), is_projection ? transpose(x) : x};
}

// Mixtral keeps each expert's matrices apart, "model.layers.0.block_sparse_moe.experts.3.w1.weight"; ours are
// one table a layer and kind, "model.layers.0.mlp.gate_proj" [experts, hidden, width]. Files may hold them in
// any order.
class ExpertTables {
 public:
  explicit ExpertTables(int64_t experts) : experts_(static_cast<size_t>(experts)) {}

  // True where the tensor belongs to a mixture and was taken.
  bool take(const std::string& name, const Tensor& x) {
    constexpr std::string_view kPart = "block_sparse_moe.";
    const size_t part = name.find(kPart);
    if (part == std::string::npos) return false;
    const std::string layer = name.substr(0, part), rest = name.substr(part + kPart.size());
    if (rest == "gate.weight") {
      routers_.push_back({layer + "mlp.router.weight", x});
      return true;
    }
    for (size_t expert = 0; expert < experts_; ++expert) {
      for (const auto& [theirs, ours] : kKinds) {
        if (rest != join_text("experts.", expert, ".", theirs, ".weight")) continue;
        auto& table = tables_[join_text(layer, "mlp.", ours)];
        table.resize(experts_);
        table[expert] = x;
        return true;
      }
    }
    fail(name, ": is no part of a mixture of ", experts_, " experts");
  }

  void append_to(std::vector<NamedTensor>& values) {
    values.insert(values.end(), routers_.begin(), routers_.end());
    for (auto& [name, parts] : tables_) {
      for (size_t i = 0; i < parts.size(); ++i)
        check(parts[i].defined(), name, ": the weights of expert ", i, " are missing");
      values.push_back({name, stack(parts)});
      parts.clear();  // one table is held twice, not all of them
    }
  }

 private:
  static constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"w1", "gate_proj"}, {"w2", "down_proj"}, {"w3", "up_proj"}};

  size_t experts_;
  std::vector<NamedTensor> routers_;
  std::map<std::string, std::vector<Tensor>> tables_;  // by our name, an entry for each expert
};

}  // namespace

std::vector<NamedTensor> read_huggingface_weights(const fs::path& folder,
                                                  const ModelConfig& config) {
  const bool gpt2 = std::holds_alternative<Gpt2Config>(config);
  const LlamaConfig llama = gpt2 ? LlamaConfig{} : std::get<LlamaConfig>(config);
  std::vector<NamedTensor> values;
  ExpertTables experts(llama.experts);
  for (const fs::path& path : weight_files(folder)) {
    const SafetensorsFile file(path);
    for (const SafetensorsFile::Entry& entry : file.entries()) {
      if (is_no_parameter(entry.name, gpt2 || llama.tied)) continue;
      Tensor x = file.load(entry.name);
      if (llama.experts > 0 && experts.take(entry.name, x)) continue;
      values.push_back(gpt2 ? from_gpt2(entry.name, x) : NamedTensor{entry.name, x});
    }
  }
  experts.append_to(values);
  return values;
}

}  // namespace brrr
