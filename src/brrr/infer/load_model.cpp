#include "brrr/infer/load_model.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "brrr/infer/huggingface.h"
#include "brrr/io/safetensors.h"
#include "brrr/io/sealed_folder.h"
#include "brrr/text/tokenizer_file.h"

namespace brrr::infer {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kUnusedSeed = 0;  // of initial values that are overwritten

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  check(file.good(), path.string(), ": cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// "step-00000100", and nothing that was left half written beside it.
bool is_checkpoint_name(const std::string& name) {
  constexpr std::string_view kPrefix = "step-";
  return name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
         std::all_of(name.begin() + kPrefix.size(), name.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

bool is_whole(const fs::path& checkpoint) {
  try {
    check_sealed_folder(checkpoint);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// What to use in place of a checkpoint that cannot be: the newest whole one before it.
std::string way_out(const fs::path& damaged) {
  std::vector<fs::path> earlier;
  for (const fs::path& path : find_checkpoints(damaged.parent_path().parent_path())) {
    if (path.filename() == damaged.filename()) break;
    earlier.push_back(path);
  }
  for (; !earlier.empty(); earlier.pop_back()) {
    if (is_whole(earlier.back()))
      return join_text("; the one before it is whole: ", earlier.back().string());
  }
  return "; there is no whole one before it";
}

void require_whole(const fs::path& checkpoint) {
  try {
    check_sealed_folder(checkpoint);
  } catch (const Error& error) {
    fail(error.what(), way_out(checkpoint));
  }
}

fs::path checkpoint_of_run(const fs::path& run) {
  const std::vector<fs::path> all = find_checkpoints(run);
  check(!all.empty(), run.string(),
        ": the run has no checkpoint yet; it writes the first one when it is saved or ends");
  const fs::path best = run / "checkpoints" / "best";
  if (!fs::is_regular_file(best)) return all.back();
  std::string name = read_text(best);
  while (!name.empty() && (name.back() == '\n' || name.back() == '\r' || name.back() == ' '))
    name.pop_back();
  fs::path path = run / "checkpoints" / name;
  check(is_checkpoint_name(name) && fs::is_directory(path), best.string(), ": names \"", name,
        "\", which is no checkpoint of the run; use ", all.back().string());
  return path;
}

std::shared_ptr<const text::Tokenizer> tokenizer_of(const fs::path& folder,
                                                    const LoadModelOptions& options) {
  if (!options.tokenizer.empty()) return text::load_tokenizer(options.tokenizer);
  for (const char* name : {"tokenizer.brrr.json", "tokenizer.json", "vocab.json", "encoder.json"}) {
    if (!fs::exists(folder / name)) continue;
    const bool one_file = std::string_view(name).starts_with("tokenizer");
    return text::load_tokenizer((one_file ? folder / name : folder).string());
  }
  return nullptr;
}

LoadedModel load_checkpoint(const fs::path& folder, const LoadModelOptions& options) {
  require_whole(folder);
  const ModelConfig config = model_from_json(read_text(folder / "model.json"));
  Random random(kUnusedSeed);
  auto model = make_model(config, random);
  const SafetensorsFile file(folder / "model.safetensors");
  std::vector<NamedTensor> values;
  for (const SafetensorsFile::Entry& entry : file.entries())
    values.push_back({entry.name, file.load(entry.name)});
  model->load_state_dict(values);
  return {config, std::move(model), tokenizer_of(folder, options), folder};
}

LoadedModel load_huggingface(const fs::path& folder, const LoadModelOptions& options) {
  const ModelConfig config = config_from_huggingface(read_text(folder / "config.json"));
  Random random(kUnusedSeed);
  auto model = make_model(config, random);
  model->load_state_dict(read_huggingface_weights(folder, config));
  return {config, std::move(model), tokenizer_of(folder, options), folder};
}

void require_tokenizer_fits(const LoadedModel& loaded) {
  if (!loaded.tokenizer) return;
  check(loaded.tokenizer->vocab_size() <= loaded.model->vocab(), loaded.source.string(),
        ": the tokenizer has ", loaded.tokenizer->vocab_size(), " ids and the model knows ",
        loaded.model->vocab(), "; they do not belong together");
}

}  // namespace

std::vector<fs::path> find_checkpoints(const fs::path& run) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "checkpoints", none)) {
    if (entry.is_directory() && is_checkpoint_name(entry.path().filename().string()))
      found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    const auto number = [](const fs::path& p) { return p.filename().string().substr(5); };
    const std::string x = number(a), y = number(b);
    return x.size() != y.size() ? x.size() < y.size() : x < y;
  });
  return found;
}

LoadedModel load_model(const fs::path& path, const LoadModelOptions& options) {
  check(fs::exists(path), path.string(),
        ": there is no such file or folder; a model is a run of "
        "`brrr train`, one of its checkpoints, or a Hugging Face folder");
  check(fs::is_directory(path), path.string(),
        ": a model is a folder: a run of `brrr train`, one of its checkpoints, or a Hugging Face "
        "folder");
  const fs::path folder = path.filename().empty() ? path.parent_path() : path;  // "run/" is "run"
  LoadedModel loaded;
  if (fs::exists(folder / "config.json")) {
    loaded = load_huggingface(folder, options);
  } else if (fs::is_directory(folder / "checkpoints")) {
    loaded = load_checkpoint(checkpoint_of_run(folder), options);
  } else {
    check(is_checkpoint_name(folder.filename().string()) || fs::exists(folder / "model.json"),
          folder.string(),
          ": has neither checkpoints, model.json nor config.json, so it is no run, "
          "no checkpoint and no Hugging Face model");
    loaded = load_checkpoint(folder, options);
  }
  require_tokenizer_fits(loaded);
  return loaded;
}

}  // namespace brrr::infer
