#include "brrr/train/step_queue.h"

namespace brrr::training {

void StepQueue::start(Batch batch, int64_t step) {
  const StepLimits spikes = guard_.spike_limits(size());
  const auto start = Clock::now();
  runtime::PendingResults results = step_.start(batch, step, guard_.step_limits(spikes));
  under_way_.push_back({std::move(batch), spikes, start, std::move(results)});
}

StepQueue::Finished StepQueue::finish() {
  invariant(!empty(), "a step was finished that was never started");
  UnderWay oldest = std::move(under_way_.front());
  under_way_.pop_front();
  StepResult result = step_.finish(std::move(oldest.results));
  const auto now = Clock::now();
  const std::chrono::duration<double> took = now - std::max(oldest.start, last_finish_);
  last_finish_ = now;
  return {.batch = std::move(oldest.batch),
          .spikes = oldest.spikes,
          .result = std::move(result),
          .seconds = took.count()};
}

}  // namespace brrr::training
