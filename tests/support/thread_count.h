// So many threads while it lives: for what depends on their number, such as the scratch that kernels ask for.
#pragma once

#include "brrr/base/thread_pool.h"

namespace brrr {

class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(thread_pool().threads()) { set_num_threads(threads); }
  ~ThreadCount() { set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

}  // namespace brrr
