// Makes batches ahead on a thread of its own, so that a step never waits for the disk.
//
//   Prefetcher prefetch([&](int64_t step) { return batches.at(step); }, {.first_step = 0, .ahead = 4});
//   Batch batch = prefetch.next();
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "brrr/data/batches.h"

namespace brrr {

struct PrefetchOptions {
  int64_t first_step = 0;
  int64_t ahead = 4;  // batches that may wait to be taken
};

class Prefetcher {
 public:
  using Make = std::function<Batch(int64_t step)>;

  Prefetcher(Make make, const PrefetchOptions& options);
  ~Prefetcher();  // ends the thread, whatever it is doing, after the batch in hand
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The batch of the next step. What making it threw is thrown here, at its turn and at every call after.
  Batch next();

 private:
  void run();

  Make make_;
  PrefetchOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::exception_ptr error_;  // comes after everything in ready_
  bool stop_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace brrr
