// Looks at a GPU while it works: a thread asks NVML every few milliseconds, since clocks and power of a GPU that
// has just finished say nothing about the work.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "brrr/device/nvml.h"

namespace brrr {

// What was seen over a while.
struct GpuLoad {
  int64_t looks = 0;
  std::optional<int> lowest_sm_clock_mhz, highest_sm_clock_mhz, max_sm_clock_mhz, memory_clock_mhz;
  std::optional<double> mean_watts, highest_watts, limit_watts;
  std::optional<int> highest_celsius;
  std::optional<uint64_t> throttle_bits;    // all that were set at any look
  std::vector<GpuProcess> other_processes;  // at the last look
  std::string problem;                      // why nothing is known

  void add(const GpuState& state);

 private:
  double watts_sum_ = 0;
  int64_t watts_looks_ = 0;
};

class GpuWatch {
 public:
  explicit GpuWatch(std::string bus_id, const NvmlFunctions& library = nvml(),
                    std::chrono::milliseconds every = std::chrono::milliseconds(20));
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  GpuLoad finish();  // ends the watch

 private:
  void watch();

  const std::string bus_id_;
  const NvmlFunctions& library_;
  const std::chrono::milliseconds every_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  GpuLoad load_;
  std::thread thread_;
};

}  // namespace brrr
