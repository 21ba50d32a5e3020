#include "brrr/train/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include "brrr/base/error.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/device/default_device.h"
#include "brrr/io/atomic_file.h"
#include "brrr/train/checkpoint.h"
#include "brrr/train/state.h"

namespace brrr {
namespace fs = std::filesystem;
namespace {

const fs::path kConfigFile = "config.toml";

DataFacts facts_of(const Corpus& corpus, const DataConfig& config) {
  return {.train_tokens = corpus.train.token_count(),
          .vocab = corpus.vocab,
          .documents = corpus.documents,
          .longest_document = corpus.longest_document,
          .is_stories = config.files.empty()};
}

Bytes bytes_below(const fs::path& folder) {
  Bytes total;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, missing)) {
    if (entry.is_regular_file()) total += Bytes(static_cast<int64_t>(entry.file_size()));
  }
  return total;
}

PreparedRun prepare(const RunRequest& request, const fs::path& folder) {
  check_config(request.config);
  PreparedRun prepared;
  prepared.corpus = make_corpus(request.config.data, folder, request.resume);
  prepared.machine = look_at_machine();
  prepared.run = resolve_sizes(request.config, facts_of(prepared.corpus, request.config.data),
                               prepared.machine);
  prepared.plan = plan_training(prepared.run.config, prepared.run.model, request.rates,
                                bytes_below(folder / "data"));
  return prepared;
}

// Where the program will live.
Bytes memory_of_device(const MachineFacts& machine) {
  const Device device = default_device();
  return device.kind == DeviceKind::cuda ? Bytes(cuda::memory_state(device.index).free)
                                         : machine.memory;
}

// Refuses a folder with files of somebody else; what preparing a run left behind does not count.
void require_free(const fs::path& folder) {
  check(!holds_run(folder), folder.string(),
        " holds a run already; go on with it by --resume, or name another folder with --out");
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, missing)) {
    const std::string name = entry.path().filename().string();
    check(name == "data" || name.starts_with("tokenizer.json"), folder.string(),
          " is no run and not empty (it has ", name, "); name another folder with --out");
  }
}

// A folder that is gone with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(fs::temp_directory_path() / fmt::format("brrr-plan-{}", ::getpid())) {
    fs::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

bool holds_run(const fs::path& folder) { return fs::exists(folder / kConfigFile); }

TrainConfig settings_of_run(const fs::path& folder) {
  check(holds_run(folder), folder.string(), " holds no run: it has no ", kConfigFile.string(),
        "; name the folder of a run with --out");
  const FoundCheckpoint found = find_checkpoint(folder);
  if (found.path.empty()) return read_config(folder / kConfigFile);
  const Snapshot saved = read_checkpoint(found.path);
  return parse_training_state(saved.state_json, (found.path / "state.json").string()).config;
}

PreparedRun prepare_run(const RunRequest& request) {
  if (!request.resume) require_free(request.folder);
  PreparedRun prepared = prepare(request, request.folder);
  require_room(prepared.run.config, prepared.run.model, prepared.plan,
               memory_of_device(prepared.machine), available_disk(request.folder));
  fs::create_directories(request.folder);
  write_file_atomically(request.folder / kConfigFile, to_toml(prepared.run.config));
  return prepared;
}

PreparedRun plan_run(const RunRequest& request) {
  const TemporaryFolder folder;
  return prepare(request, folder.path());
}

fs::path free_run_folder(const DataConfig& data) {
  const std::string name = data.files.empty()
                               ? std::string("stories")
                               : fs::path(data.files.front()).lexically_normal().stem().string();
  const fs::path runs = "runs";
  fs::path folder = runs / (name.empty() ? "run" : name);
  for (int number = 2; fs::exists(folder); ++number)
    folder = runs / fmt::format("{}-{}", name, number);
  return folder;
}

}  // namespace brrr
