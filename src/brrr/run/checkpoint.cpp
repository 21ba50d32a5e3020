#include "brrr/run/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fstream>
#include <sstream>
#include <utility>

#include "brrr/base/error.h"
#include "brrr/io/atomic_file.h"
#include "brrr/io/safetensors.h"
#include "brrr/io/sealed_folder.h"
#include "brrr/ops/create/copy.h"

namespace brrr::runs {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr const char* kBest = "best";

void write_text(const fs::path& path, const std::string& text) {
  write_file_atomically(path, text + "\n");
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  check(file.good(), path.string(), " cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<NamedTensor> read_tensors(const fs::path& path) {
  const SafetensorsFile file(path);
  std::vector<NamedTensor> tensors;
  for (const SafetensorsFile::Entry& entry : file.entries())
    tensors.push_back({entry.name, file.load(entry.name)});
  return tensors;
}

// The step of "step-00000100"; nothing for other names, such as those set aside or half written.
std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return {};
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [stop, failure] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (failure != std::errc() || stop != end) return {};
  return step;
}

std::string best_name(const fs::path& folder) {
  std::error_code missing;
  if (!fs::is_regular_file(folder / kBest, missing)) return {};
  std::string name = read_text(folder / kBest);
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

// Removes what is neither among the newest nor the best. The manifest goes first: a folder that a crash
// leaves half removed does not pass for whole.
void remove_old(const fs::path& run_folder, int keep) {
  const fs::path folder = checkpoints_of(run_folder);
  const std::string best = best_name(folder);
  const std::vector<int64_t> steps = list_checkpoints(run_folder);
  const auto kept = static_cast<size_t>(std::max(keep, 1));
  for (size_t i = 0; i + kept < steps.size(); ++i) {
    const std::string name = checkpoint_name(steps[i]);
    if (name == best) continue;
    std::error_code ignored;  // what stays is removed by the next one
    fs::remove(folder / name / "manifest.json", ignored);
    fs::remove_all(folder / name, ignored);
  }
}

}  // namespace

std::vector<NamedTensor> copy_tensors(const std::vector<NamedTensor>& tensors) {
  NoGrad values_only;
  std::vector<NamedTensor> copies;
  copies.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const bool is_here = !tensor.device().is_accelerator();
    copies.push_back({name, is_here ? clone(tensor.detach()) : to(tensor.detach(), Device::cpu())});
  }
  return copies;
}

std::string checkpoint_name(int64_t step) { return fmt::format("{}{:08}", kPrefix, step); }

fs::path checkpoints_of(const fs::path& run_folder) { return run_folder / "checkpoints"; }

void write_checkpoint(const fs::path& run_folder, const Snapshot& snapshot,
                      const CheckpointOptions& options) {
  const fs::path folder = checkpoints_of(run_folder);
  const std::string name = checkpoint_name(snapshot.step);
  {
    SealedFolderWriter writer(folder / name);
    write_text(writer.path() / "model.json", snapshot.model_json);
    write_text(writer.path() / "state.json", snapshot.state_json);
    if (!snapshot.tokenizer_json.empty())
      write_text(writer.path() / "tokenizer.json", snapshot.tokenizer_json);
    save_safetensors(writer.path() / "model.safetensors", snapshot.model);
    save_safetensors(writer.path() / "optimizer.safetensors", snapshot.optimizer);
    writer.commit();
  }
  if (snapshot.is_best) mark_best(run_folder, snapshot.step);
  remove_old(run_folder, options.keep);
}

// ---- the thread ----------------------------------------------------------------------------------
struct CheckpointWriter::Outcome {
  std::atomic<bool> has_failed = false;
  std::exception_ptr error;
};

CheckpointWriter::CheckpointWriter(const fs::path& run_folder, const CheckpointOptions& options)
    : folder_(run_folder), options_(options), outcome_(std::make_unique<Outcome>()) {}

CheckpointWriter::~CheckpointWriter() { join(); }

void CheckpointWriter::join() {
  if (thread_.joinable()) thread_.join();
}

void CheckpointWriter::begin(Snapshot snapshot) {
  finish();
  thread_ = std::thread([this, snapshot = std::move(snapshot)] {
    try {
      write_checkpoint(folder_, snapshot, options_);
    } catch (...) {
      outcome_->error = std::current_exception();
      outcome_->has_failed = true;
    }
  });
}

std::optional<std::string> CheckpointWriter::take_failure() {
  if (!outcome_->has_failed) return {};
  try {
    finish();
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return {};
}

void CheckpointWriter::finish() {
  join();
  if (!outcome_->has_failed.exchange(false)) return;
  std::rethrow_exception(std::exchange(outcome_->error, nullptr));
}

// ---- reading -------------------------------------------------------------------------------------
std::vector<int64_t> list_checkpoints(const fs::path& run_folder) {
  std::vector<int64_t> steps;
  std::error_code missing;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(checkpoints_of(run_folder), missing)) {
    if (const auto step = step_of(entry.path().filename().string())) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

FoundCheckpoint find_checkpoint(const fs::path& run_folder) {
  FoundCheckpoint found;
  std::vector<int64_t> newest_first = list_checkpoints(run_folder);
  std::reverse(newest_first.begin(), newest_first.end());
  for (const int64_t step : newest_first) {
    const fs::path path = checkpoints_of(run_folder) / checkpoint_name(step);
    try {
      check_sealed_folder(path);
      found.path = path;
      found.step = step;
      return found;
    } catch (const Error& error) {
      found.damaged.emplace_back(error.what());
    }
  }
  return found;
}

Snapshot read_checkpoint(const fs::path& checkpoint) {
  check_sealed_folder(checkpoint);
  const auto step = step_of(checkpoint.filename().string());
  if (!step)
    fail(checkpoint.string(), " is no checkpoint: its name is not ", checkpoint_name(100),
         " or the like");
  const fs::path tokenizer = checkpoint / "tokenizer.json";
  return {.step = *step,
          .model_json = read_text(checkpoint / "model.json"),
          .state_json = read_text(checkpoint / "state.json"),
          .tokenizer_json = fs::exists(tokenizer) ? read_text(tokenizer) : std::string(),
          .model = read_tensors(checkpoint / "model.safetensors"),
          .optimizer = read_tensors(checkpoint / "optimizer.safetensors")};
}

void mark_best(const fs::path& run_folder, int64_t step) {
  write_text(checkpoints_of(run_folder) / kBest, checkpoint_name(step));
}

void set_aside_damaged(const fs::path& run_folder, int64_t step) {
  for (const int64_t newer : list_checkpoints(run_folder)) {
    if (newer <= step) continue;
    const fs::path path = checkpoints_of(run_folder) / checkpoint_name(newer);
    fs::path aside = path;
    aside += ".damaged";
    std::error_code failure;
    fs::remove_all(aside, failure);
    fs::rename(path, aside, failure);
    check(!failure, path.string(), " cannot be renamed: ", failure.message());
  }
}

}  // namespace brrr::runs
