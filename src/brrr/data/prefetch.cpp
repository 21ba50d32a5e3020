#include "brrr/data/prefetch.h"

#include <utility>

#include "brrr/base/error.h"

namespace brrr {

Prefetcher::Prefetcher(Make make, const PrefetchOptions& options)
    : make_(std::move(make)), options_(options) {
  check(options_.ahead > 0, "prefetch: ", options_.ahead, " batches ahead; at least 1");
  thread_ = std::thread([this] { run(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetcher::run() {
  for (int64_t step = options_.first_step;; ++step) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock,
                    [&] { return stop_ || static_cast<int64_t>(ready_.size()) < options_.ahead; });
      if (stop_) return;
    }
    try {
      Batch batch = make_(step);
      const std::lock_guard lock(mutex_);
      ready_.push_back(std::move(batch));
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    changed_.notify_all();
    // Only this thread writes error_, so it may look without the lock.
    if (error_) return;
  }
}

Batch Prefetcher::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || error_; });
  if (ready_.empty()) std::rethrow_exception(error_);
  Batch batch = std::move(ready_.front());
  ready_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return batch;
}

}  // namespace brrr
