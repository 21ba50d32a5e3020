// What the driver's management library (NVML) says about a GPU: clocks, power, why the clocks are held down, and who
// else holds memory. Found with dlopen; where there is none, or it does not answer a question, the answer is absent
// and the reason is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "brrr/base/units.h"

namespace brrr {

// The functions of libnvidia-ml that we call; all return 0 where they went well. A struct, so that tests can answer
// in its place.
struct NvmlFunctions {
  using Device = struct nvmlDevice_st*;
  struct Process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
  };
  int (*init)() = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*device_by_bus_id)(const char*, Device*) = nullptr;
  int (*clock_mhz)(Device, int kind, unsigned*) = nullptr;
  int (*max_clock_mhz)(Device, int kind, unsigned*) = nullptr;
  int (*power_milliwatts)(Device, unsigned*) = nullptr;
  int (*power_limit_milliwatts)(Device, unsigned*) = nullptr;
  int (*celsius)(Device, int sensor, unsigned*) = nullptr;
  int (*throttle_bits)(Device, unsigned long long*) = nullptr;
  int (*processes)(Device, unsigned* count, Process*) = nullptr;

  std::string problem;  // why there is no library; empty when all is well
  bool is_loaded() const { return problem.empty(); }
};
const NvmlFunctions& nvml();

// The names of the bits that NVML calls throttle (later: clock event) reasons, lowest bit first. Bits that it does not
// name yet appear as hexadecimal numbers.
std::vector<std::string> throttle_reasons(uint64_t bits);
// The same without what is no trouble: an idle GPU, and clocks that somebody set.
uint64_t troubling_reasons(uint64_t bits);

// A process with memory on the GPU. In a container NVML may count process ids as the host does.
struct GpuProcess {
  int64_t pid = 0;
  std::optional<Bytes> used;  // absent: the driver does not say
};

// How a GPU is at this moment.
struct GpuState {
  std::optional<int> sm_clock_mhz, max_sm_clock_mhz, memory_clock_mhz;
  std::optional<double> watts, limit_watts;
  std::optional<int> celsius;
  std::optional<uint64_t> throttle_bits;
  std::vector<GpuProcess> other_processes;
  std::string problem;  // why nothing is known; empty when NVML answered
};
// `bus_id` as in GpuInfo: the indices of CUDA and NVML differ where devices are hidden.
GpuState read_gpu_state(const std::string& bus_id, const NvmlFunctions& library = nvml());

}  // namespace brrr
