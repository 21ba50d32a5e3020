// Checkpoints of a run: folders of RUN/checkpoints that are there whole or not at all.
//
//   step-00000100/model.json              the configuration (nn/models.h)
//                 model.safetensors       the weights to use: averages, where the run keeps them
//                 optimizer.safetensors   what going on needs besides: optimizer, live weights, scales
//                 state.json              version, step, seeds, settings, what the guard has seen
//                 tokenizer.json          so that a checkpoint alone is enough to generate
//                 manifest.json           the checksum of each (io/sealed_folder.h)
//   best                                  the name of the one with the lowest validation loss
//
// Training hands over copies and goes on; a thread writes them. What goes wrong there is told at the next
// call, and everything that was whole before stays.
#pragma once

#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "brrr/nn/state_dict.h"

namespace brrr::runs {

// All that a checkpoint holds, in memory.
struct Snapshot {
  int64_t step = 0;  // updates made
  std::string model_json, state_json;
  std::string tokenizer_json;  // empty: tokens came without a tokenizer
  std::vector<NamedTensor> model, optimizer;
  bool is_best = false;
};

// Copies of the tensors as they are now.
std::vector<NamedTensor> copy_tensors(const std::vector<NamedTensor>& tensors);

struct CheckpointOptions {
  int keep = 2;  // the newest so many stay, and the best
};

class CheckpointWriter {
 public:
  CheckpointWriter(const std::filesystem::path& run_folder, const CheckpointOptions& options);
  ~CheckpointWriter();  // waits for the thread; an error that nobody asked for is lost here
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Begins to write, behind the write before. Throws what that one threw.
  void begin(Snapshot snapshot);
  // Whether a write has failed since the last question: its words, which are not told again.
  std::optional<std::string> take_failure();
  // Waits until everything is on disk; throws what the last write threw.
  void finish();

 private:
  void join();

  std::filesystem::path folder_;
  CheckpointOptions options_;
  std::thread thread_;
  struct Outcome;
  std::unique_ptr<Outcome> outcome_;
};

// Writes one at once: what the thread does.
void write_checkpoint(const std::filesystem::path& run_folder, const Snapshot& snapshot,
                      const CheckpointOptions& options);

// ---- reading -------------------------------------------------------------------------------------
std::string checkpoint_name(int64_t step);  // "step-00000100"
std::filesystem::path checkpoints_of(const std::filesystem::path& run_folder);
// The steps of the folders that are there, ascending; whole or not.
std::vector<int64_t> list_checkpoints(const std::filesystem::path& run_folder);

struct FoundCheckpoint {
  std::filesystem::path path;  // empty: there is no whole one
  int64_t step = 0;
  std::vector<std::string> damaged;  // newer ones that were passed over, each with what is wrong
};
// The newest one whose every file is as it was written.
FoundCheckpoint find_checkpoint(const std::filesystem::path& run_folder);

// Everything back. Throws Error naming the file that is damaged, missing or of another version.
Snapshot read_checkpoint(const std::filesystem::path& checkpoint);

// Says that the checkpoint of this step is the best.
void mark_best(const std::filesystem::path& run_folder, int64_t step);

// Damaged folders newer than `step` get the ending ".damaged": they stay for who wants to look, and
// their names are free again.
void set_aside_damaged(const std::filesystem::path& run_folder, int64_t step);

}  // namespace brrr::runs
