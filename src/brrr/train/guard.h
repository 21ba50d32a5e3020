// Watches loss and gradient norm of every step. A value is a spike when it is z standard deviations above
// the mean of the last steps; what is not a number is worse. The limits go into the compiled step as
// inputs (step.h), so that a bad update is left out where it would have been made.
//
// A GPU may be two steps ahead of the newest result that the host has seen. So that a run does not depend on
// how far ahead it happened to be, the limits of a step never follow from the two steps before it.
#pragma once

#include <deque>
#include <filesystem>
#include <string>

#include "brrr/run/config.h"
#include "brrr/train/step.h"

namespace brrr::training {

inline constexpr int64_t kStepsAhead = 2;  // steps under way, at most, when an older one is judged

// What the guard remembers: part of every checkpoint, since limits of later steps follow from it.
struct GuardHistory {
  std::deque<double> losses, grad_norms;
  std::deque<StepLimits> limits;  // behind each of the last steps, the newest last
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
  explicit SpikeGuard(const runs::GuardConfig& config) : config_(config) {}

  // Beyond them the next step to start is a spike, while `under_way` others are not judged; infinite while
  // too little was seen.
  StepLimits spike_limits(int64_t under_way = 0) const;
  // What a step with these is run with: the same, but to warn is to apply.
  StepLimits step_limits(const StepLimits& spikes) const;
  // Judges a step that had these limits, and remembers it.
  GuardVerdict judge(const StepResult& result, const StepLimits& spikes);
  // Whether a step that is refused ends the run, so that none behind it may change the state.
  bool halts() const { return config_.action == runs::GuardAction::stop; }

  const GuardHistory& history() const { return history_; }
  void restore(GuardHistory history) { history_ = std::move(history); }

 private:
  void remember(const StepResult& result);
  void remember_limits();
  GuardVerdict verdict_on_bad(const StepResult& result, const StepLimits& spikes);

  runs::GuardConfig config_;
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

}  // namespace brrr::training
