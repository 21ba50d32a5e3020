#include "brrr/device/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <string_view>

#include "brrr/base/error.h"

namespace brrr {
namespace {

// NVML's numbers.
constexpr int kInsufficientSize = 7;
constexpr int kSmClock = 1, kMemoryClock = 2, kGpuSensor = 0;
constexpr unsigned long long kUnknownBytes = ~0ULL;

template <typename Function>
void find(void* handle, const char* symbol, Function& function, std::string& problem) {
  function = reinterpret_cast<Function>(dlsym(handle, symbol));
  if (!function && problem.empty()) problem = join_text("NVML has no function ", symbol);
}

NvmlFunctions load() {
  NvmlFunctions library;
  void* const handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    library.problem = "libnvidia-ml.so.1 was not found; it comes with NVIDIA's driver";
    return library;
  }
  std::string& problem = library.problem;
  find(handle, "nvmlInit_v2", library.init, problem);
  find(handle, "nvmlErrorString", library.error_text, problem);
  find(handle, "nvmlDeviceGetHandleByPciBusId_v2", library.device_by_bus_id, problem);
  find(handle, "nvmlDeviceGetClockInfo", library.clock_mhz, problem);
  find(handle, "nvmlDeviceGetMaxClockInfo", library.max_clock_mhz, problem);
  find(handle, "nvmlDeviceGetPowerUsage", library.power_milliwatts, problem);
  find(handle, "nvmlDeviceGetEnforcedPowerLimit", library.power_limit_milliwatts, problem);
  find(handle, "nvmlDeviceGetTemperature", library.celsius, problem);
  find(handle, "nvmlDeviceGetCurrentClocksThrottleReasons", library.throttle_bits, problem);
  find(handle, "nvmlDeviceGetComputeRunningProcesses_v3", library.processes, problem);
  if (!library.is_loaded()) return library;
  if (const int status = library.init(); status != 0)
    problem = join_text("nvmlInit failed: ", library.error_text(status));
  return library;
}

// A number that the driver may refuse: not every card, and not every container, tells all.
template <typename Value, typename Ask>
std::optional<Value> answer(const Ask& ask) {
  Value value{};
  return ask(&value) == 0 ? std::optional(value) : std::nullopt;
}

std::optional<int> whole(std::optional<unsigned> value) {
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}
std::optional<double> watts(std::optional<unsigned> milliwatts) {
  return milliwatts ? std::optional(*milliwatts / 1e3) : std::nullopt;
}

std::vector<GpuProcess> other_processes(const NvmlFunctions& library,
                                        NvmlFunctions::Device device) {
  std::vector<NvmlFunctions::Process> found(16);
  for (int tries = 0;; ++tries) {  // processes may start between two calls
    auto count = static_cast<unsigned>(found.size());
    const int status = library.processes(device, &count, found.data());
    if (status == 0) {
      found.resize(count);
      break;
    }
    if (status != kInsufficientSize || tries == 3) return {};
    found.resize(std::max<size_t>(count, found.size()) * 2);
  }
  std::vector<GpuProcess> others;
  for (const NvmlFunctions::Process& process : found) {
    if (static_cast<int64_t>(process.pid) == getpid()) continue;
    others.push_back({.pid = process.pid,
                      .used = process.used_bytes == kUnknownBytes
                                  ? std::nullopt
                                  : std::optional(Bytes(process.used_bytes))});
  }
  return others;
}

struct Reason {
  std::string_view name;
  bool is_trouble;
};
// By bit.
constexpr std::array<Reason, 9> kReasons = {{{"idle", false},
                                             {"application clocks set", false},
                                             {"software power cap", true},
                                             {"hardware slowdown", true},
                                             {"sync boost with another GPU", true},
                                             {"software thermal slowdown", true},
                                             {"hardware thermal slowdown", true},
                                             {"hardware power brake", true},
                                             {"display clocks set", false}}};

}  // namespace

const NvmlFunctions& nvml() {
  static const NvmlFunctions library = load();
  return library;
}

std::vector<std::string> throttle_reasons(uint64_t bits) {
  std::vector<std::string> names;
  for (size_t bit = 0; bit < kReasons.size(); ++bit) {
    if ((bits >> bit & 1) != 0) names.emplace_back(kReasons[bit].name);
  }
  for (uint64_t rest = bits >> kReasons.size() << kReasons.size(); rest != 0; rest &= rest - 1) {
    char text[32];
    std::snprintf(text, sizeof(text), "reason 0x%llx",
                  1ULL << static_cast<unsigned>(std::countr_zero(rest)));
    names.emplace_back(text);
  }
  return names;
}

uint64_t troubling_reasons(uint64_t bits) {
  for (size_t bit = 0; bit < kReasons.size(); ++bit) {
    if (!kReasons[bit].is_trouble) bits &= ~(uint64_t{1} << bit);
  }
  return bits;
}

GpuState read_gpu_state(const std::string& bus_id, const NvmlFunctions& library) {
  GpuState state;
  if (!library.is_loaded()) {
    state.problem = library.problem;
    return state;
  }
  NvmlFunctions::Device device = nullptr;
  if (const int status = library.device_by_bus_id(bus_id.c_str(), &device); status != 0) {
    state.problem = join_text("NVML knows no GPU at ", bus_id, ": ", library.error_text(status));
    return state;
  }
  const auto ask = [&](auto* function) {
    return answer<unsigned>([&](unsigned* value) { return function(device, value); });
  };
  const auto ask_kind = [&](auto* function, int kind) {
    return whole(answer<unsigned>([&](unsigned* value) { return function(device, kind, value); }));
  };
  state.sm_clock_mhz = ask_kind(library.clock_mhz, kSmClock);
  state.max_sm_clock_mhz = ask_kind(library.max_clock_mhz, kSmClock);
  state.memory_clock_mhz = ask_kind(library.clock_mhz, kMemoryClock);
  state.watts = watts(ask(library.power_milliwatts));
  state.limit_watts = watts(ask(library.power_limit_milliwatts));
  state.celsius = ask_kind(library.celsius, kGpuSensor);
  if (const auto bits = answer<unsigned long long>(
          [&](unsigned long long* value) { return library.throttle_bits(device, value); }))
    state.throttle_bits = *bits;
  state.other_processes = other_processes(library, device);
  return state;
}

}  // namespace brrr
