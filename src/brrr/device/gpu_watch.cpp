#include "brrr/device/gpu_watch.h"

#include <algorithm>

namespace brrr {
namespace {

template <typename Value>
void keep_lowest(std::optional<Value>& kept, const std::optional<Value>& seen) {
  if (seen) kept = kept ? std::min(*kept, *seen) : *seen;
}
template <typename Value>
void keep_highest(std::optional<Value>& kept, const std::optional<Value>& seen) {
  if (seen) kept = kept ? std::max(*kept, *seen) : *seen;
}

}  // namespace

void GpuLoad::add(const GpuState& state) {
  problem = state.problem;
  if (!problem.empty()) return;
  looks += 1;
  keep_lowest(lowest_sm_clock_mhz, state.sm_clock_mhz);
  keep_highest(highest_sm_clock_mhz, state.sm_clock_mhz);
  keep_highest(max_sm_clock_mhz, state.max_sm_clock_mhz);
  keep_highest(memory_clock_mhz, state.memory_clock_mhz);
  keep_highest(highest_watts, state.watts);
  keep_highest(limit_watts, state.limit_watts);
  keep_highest(highest_celsius, state.celsius);
  if (state.watts) {
    watts_sum_ += *state.watts;
    watts_looks_ += 1;
    mean_watts = watts_sum_ / static_cast<double>(watts_looks_);
  }
  if (state.throttle_bits) throttle_bits = throttle_bits.value_or(0) | *state.throttle_bits;
  other_processes = state.other_processes;
}

GpuWatch::GpuWatch(std::string bus_id, const NvmlFunctions& library,
                   std::chrono::milliseconds every)
    : bus_id_(std::move(bus_id)), library_(library), every_(every), thread_([this] { watch(); }) {}

GpuWatch::~GpuWatch() { finish(); }

void GpuWatch::watch() {
  std::unique_lock lock(mutex_);
  do {
    load_.add(read_gpu_state(bus_id_, library_));
  } while (!ended_.wait_for(lock, every_, [this] { return ends_; }));
}

GpuLoad GpuWatch::finish() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_one();
  if (thread_.joinable()) thread_.join();
  return load_;
}

}  // namespace brrr
