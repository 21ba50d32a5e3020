// Watches loss and gradient norm of every step. A value is a spike when it is z standard deviations above
// the mean of the last steps; what is not a number is worse. The limits go into the compiled step as
// inputs (step.h), so that a bad update is left out where it would have been made.
#pragma once

#include <deque>
#include <filesystem>
#include <string>

#include "brrr/train/config.h"
#include "brrr/train/step.h"

namespace brrr {

// What the guard remembers: part of every checkpoint, since limits of later steps follow from it.
struct GuardHistory {
  std::deque<double> losses, grad_norms;
  int64_t skipped_in_a_row = 0;
  bool operator==(const GuardHistory&) const = default;
};

struct GuardVerdict {
  std::string words;  // "" or what was seen and done: "loss spike (9.21, limit 3.02): skipped"
  bool stops = false;
  bool is_notable() const { return !words.empty(); }
};

class SpikeGuard {
 public:
  explicit SpikeGuard(const GuardConfig& config) : config_(config) {}

  // Beyond them the next step is a spike; infinite while too little was seen.
  StepLimits spike_limits() const;
  // What the next step is run with: the same, but to warn is to apply.
  StepLimits step_limits() const;
  // Judges a step that ran with step_limits(), and remembers it.
  GuardVerdict judge(const StepResult& result);

  const GuardHistory& history() const { return history_; }
  void restore(GuardHistory history) { history_ = std::move(history); }

 private:
  void remember(const StepResult& result);

  GuardConfig config_;
  GuardHistory history_;
};

// What somebody needs to look into a bad step: the batch, its numbers, and the norms by parameter and
// layer, in RUN/guard/step-00000123. Returns the folder.
struct BadStep {
  int64_t step = 0;  // counted from 1, as in the log
  const Batch& batch;
  const StepResult& result;
  const StepLimits& limits;
  const std::vector<NamedTensor>& parameters;
  const std::vector<std::string>& activation_names;
  std::string words;
};
std::filesystem::path save_bad_step(const std::filesystem::path& run_folder, const BadStep& bad);

}  // namespace brrr
