// Steps under way. On a GPU the host starts some before it has seen the results of the last ones, so that
// the device never waits for it; on the cpu a step is over when it was started.
#pragma once

#include <chrono>
#include <deque>

#include "brrr/train/guard.h"
#include "brrr/train/step.h"

namespace brrr::training {

class StepQueue {
 public:
  // Both must outlive the queue.
  StepQueue(TrainStep& step, const SpikeGuard& guard) : step_(step), guard_(guard) {}

  void start(Batch batch, int64_t step);

  struct Finished {
    Batch batch;
    StepLimits spikes;  // for the guard
    StepResult result;
    double seconds = 0;  // since it was started, or since the one before it was finished
  };
  // Waits for the oldest.
  Finished finish();
  void drop() { under_way_.clear(); }  // nobody wants their results

  bool empty() const { return under_way_.empty(); }
  int64_t size() const { return static_cast<int64_t>(under_way_.size()); }

 private:
  using Clock = std::chrono::steady_clock;
  struct UnderWay {
    Batch batch;
    StepLimits spikes;
    Clock::time_point start;
    runtime::PendingResults results;
  };
  TrainStep& step_;
  const SpikeGuard& guard_;
  std::deque<UnderWay> under_way_;  // the oldest first
  Clock::time_point last_finish_;
};

}  // namespace brrr::training
