#include "brrr/train/session.h"

#include <fmt/format.h>

#include "brrr/base/error.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/device/default_device.h"
#include "brrr/hardware/hardware.h"
#include "brrr/io/atomic_file.h"
#include "brrr/run/checkpoint.h"
#include "brrr/train/corpus_sources.h"
#include "brrr/train/memory_fit.h"
#include "brrr/train/state.h"

namespace brrr::training {
namespace fs = std::filesystem;
namespace {

const fs::path kConfigFile = "config.toml";

DataFacts sizes_of(const CorpusFacts& data, const runs::DataConfig& config) {
  return {.train_tokens = data.train_tokens,
          .vocab = data.vocab,
          .documents = data.documents,
          .longest_document = data.longest_document,
          .is_stories = config.files.empty()};
}

// "70 % of the rows from a.txt, 1.3 passes over it"
void describe_mixture(const CorpusFacts& data, ResolvedRun& run) {
  if (data.sources.size() < 2) return;
  const runs::TrainConfig& config = run.config;
  const double tokens = static_cast<double>(runs::resolved(config.train.steps)) *
                        static_cast<double>(runs::resolved(config.train.batch)) *
                        static_cast<double>(config.train.accumulate) *
                        static_cast<double>(runs::resolved(config.model.context));
  for (const SourceFacts& source : data.sources)
    run.reasons.push_back(fmt::format(
        "{:.3g} % of the rows from {}, {:.2g} passes over its {} tokens", 100 * source.share,
        source.name, tokens * source.share / static_cast<double>(source.train_tokens),
        with_commas(source.train_tokens)));
}

// Where the program will live: what is free there now, or all of a GPU that is not here.
Bytes memory_of(const compiler::Target& target, const MachineFacts& machine) {
  if (compiler::is_planned_only(target)) return hardware::find_gpu(target.gpu).memory;
  return target.index ? Bytes(cuda::memory_state(*target.index).free) : machine.memory;
}

// What the files of a folder take; 0 where it is not there.
Bytes bytes_in(const fs::path& folder) {
  uintmax_t bytes = 0;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, missing)) {
    if (entry.is_regular_file(missing)) bytes += entry.file_size(missing);
  }
  return Bytes(static_cast<int64_t>(bytes));
}

PlannedRun plan(const RunRequest& request, const CorpusFacts& data) {
  PlannedRun planned;
  planned.data = data;
  planned.machine = look_at_machine();
  planned.run = resolve_sizes(request.config, sizes_of(data, request.config.data), planned.machine);
  describe_mixture(data, planned.run);
  planned.plan = plan_training(planned.run.config, planned.run.model, request.target,
                               request.rates(), data.data_bytes);
  // Tokens and checkpoints that are there already are part of what the run needs.
  const Bytes disk = available_disk(request.folder) + bytes_in(request.folder);
  planned.memory = memory_of(request.target, planned.machine);
  planned.lack =
      lack_of_room(planned.run.config, planned.run.model, planned.plan, {planned.memory, disk});
  return planned;
}

// Refuses a folder with files of somebody else; what preparing a run left behind does not count.
void require_free(const fs::path& folder) {
  check(!holds_run(folder), folder.string(),
        " holds a run already; go on with it by --resume, or name another folder with --out");
  std::error_code missing;
  check(fs::is_directory(folder) || !fs::exists(folder), folder.string(),
        " is a file; name a folder with --out");
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, missing)) {
    const std::string name = entry.path().filename().string();
    check(name == "data" || name.starts_with("tokenizer.json"), folder.string(),
          " is no run and not empty (it has ", name, "); name another folder with --out");
  }
}

// Texts become tokens before the run is planned to the byte: where that could fill the disk, a part of the
// texts is looked at first.
void require_room_for_tokens(const RunRequest& request) {
  constexpr int64_t kWidestToken = 4;  // bytes, and a token is a byte of text at least
  const runs::DataConfig& data = request.config.data;
  if (request.resume || data.files.empty() || are_tokens(data)) return;
  if (size_of_texts(data.files) * kWidestToken <= available_disk(request.folder)) return;
  const std::string lack = plan_run(request).lack;
  check(lack.empty(), lack);
}

}  // namespace

bool holds_run(const fs::path& folder) { return fs::exists(folder / kConfigFile); }

runs::TrainConfig settings_of_run(const fs::path& folder) {
  check(holds_run(folder), folder.string(), " holds no run: it has no ", kConfigFile.string(),
        "; name the folder of a run with --out");
  const runs::FoundCheckpoint found = runs::find_checkpoint(folder);
  if (found.path.empty()) return runs::read_config(folder / kConfigFile);
  const runs::Snapshot saved = runs::read_checkpoint(found.path);
  return parse_training_state(saved.state_json, (found.path / "state.json").string()).config;
}

PreparedRun prepare_run(const RunRequest& request) {
  runs::check_config(request.config);
  if (!request.resume) require_free(request.folder);
  require_room_for_tokens(request);
  Corpus corpus = make_corpus(request.config.data, request.folder, request.resume);
  PreparedRun prepared{plan(request, corpus.facts), std::move(corpus)};
  check(prepared.lack.empty(), prepared.lack);
  fs::create_directories(request.folder);
  write_file_atomically(request.folder / kConfigFile, runs::to_toml(prepared.run.config));
  return prepared;
}

PlannedRun plan_run(const RunRequest& request) {
  runs::check_config(request.config);
  return plan(request, look_at_corpus(request.config.data, request.folder, request.resume));
}

fs::path free_run_folder(const runs::DataConfig& data) {
  const std::string name = data.files.empty()
                               ? std::string("stories")
                               : fs::path(data.files.front()).lexically_normal().stem().string();
  const fs::path runs = "runs";
  fs::path folder = runs / (name.empty() ? "run" : name);
  for (int number = 2; fs::exists(folder); ++number)
    folder = runs / fmt::format("{}-{}", name, number);
  return folder;
}

}  // namespace brrr::training
