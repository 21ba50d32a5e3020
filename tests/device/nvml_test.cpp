// What NVML says, decoded; a made-up library answers in the tests, so they need neither driver nor GPU.
#include "brrr/device/nvml.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "brrr/device/gpu_watch.h"

namespace brrr {
namespace {

using Device = NvmlFunctions::Device;
using Words = std::vector<std::string>;

constexpr int kNotSupported = 3, kNotFound = 6, kInsufficientSize = 7;

std::atomic<unsigned> clock_now{1980};
std::atomic<int> looks_at_clock{0};

// A GPU of 700 W that runs hot; its driver does not tell the clock of its memory.
NvmlFunctions fake_library() {
  NvmlFunctions library;
  library.error_text = [](int) { return "Not Found"; };
  library.device_by_bus_id = [](const char* id, Device* device) {
    *device = reinterpret_cast<Device>(1);
    return std::string(id) == "0000:3B:00.0" ? 0 : kNotFound;
  };
  library.clock_mhz = [](Device, int kind, unsigned* mhz) {
    *mhz = clock_now;
    looks_at_clock += kind == 1;
    return kind == 1 ? 0 : kNotSupported;
  };
  library.max_clock_mhz = [](Device, int, unsigned* mhz) {
    *mhz = 1980;
    return 0;
  };
  library.power_milliwatts = [](Device, unsigned* milliwatts) {
    *milliwatts = 698500;
    return 0;
  };
  library.power_limit_milliwatts = [](Device, unsigned* milliwatts) {
    *milliwatts = 700000;
    return 0;
  };
  library.celsius = [](Device, int, unsigned* celsius) {
    *celsius = 71;
    return 0;
  };
  library.throttle_bits = [](Device, unsigned long long* bits) {
    *bits = clock_now < 1980 ? 0x4 : 0;
    return 0;
  };
  library.processes = [](Device, unsigned* count, NvmlFunctions::Process* processes) {
    constexpr unsigned kThere = 20;  // more than a first call has room for
    const bool fits = *count >= kThere;
    *count = kThere;
    if (!fits) return kInsufficientSize;
    for (unsigned i = 0; i < kThere; ++i)
      processes[i] = {.pid = 900000000 + i, .used_bytes = 1u << 30};
    processes[0].pid = static_cast<unsigned>(getpid());
    processes[1].used_bytes = ~0ULL;
    return 0;
  };
  return library;
}

TEST(Nvml, NamesEveryThrottleBit) {
  EXPECT_EQ(throttle_reasons(0), Words{});
  EXPECT_EQ(throttle_reasons(0x1), Words{"idle"});
  EXPECT_EQ(throttle_reasons(0x2), Words{"application clocks set"});
  EXPECT_EQ(throttle_reasons(0x4), Words{"software power cap"});
  EXPECT_EQ(throttle_reasons(0x8), Words{"hardware slowdown"});
  EXPECT_EQ(throttle_reasons(0x10), Words{"sync boost with another GPU"});
  EXPECT_EQ(throttle_reasons(0x20), Words{"software thermal slowdown"});
  EXPECT_EQ(throttle_reasons(0x40), Words{"hardware thermal slowdown"});
  EXPECT_EQ(throttle_reasons(0x80), Words{"hardware power brake"});
  EXPECT_EQ(throttle_reasons(0x100), Words{"display clocks set"});
}

TEST(Nvml, NamesSeveralBitsAtOnceAndThoseOfLaterDrivers) {
  EXPECT_EQ(throttle_reasons(0x44), (Words{"software power cap", "hardware thermal slowdown"}));
  EXPECT_EQ(throttle_reasons(0x8000000000000404),
            (Words{"software power cap", "reason 0x400", "reason 0x8000000000000000"}));
}

TEST(Nvml, IdlenessAndSetClocksAreNoTrouble) {
  EXPECT_EQ(troubling_reasons(0x103), 0u);
  EXPECT_EQ(troubling_reasons(0x107), 0x4u);
  EXPECT_EQ(troubling_reasons(0x400), 0x400u) << "what is not known is trouble";
}

TEST(Nvml, ReadsAStateAndLeavesOutWhatTheDriverRefuses) {
  clock_now = 1980;
  const GpuState state = read_gpu_state("0000:3B:00.0", fake_library());
  EXPECT_EQ(state.problem, "");
  EXPECT_EQ(state.sm_clock_mhz, 1980);
  EXPECT_EQ(state.memory_clock_mhz, std::nullopt);
  EXPECT_EQ(state.watts, 698.5);
  EXPECT_EQ(state.limit_watts, 700);
  EXPECT_EQ(state.celsius, 71);
  EXPECT_EQ(state.throttle_bits, 0u);
}

TEST(Nvml, ListsAllOtherProcessesButNotItself) {
  const GpuState state = read_gpu_state("0000:3B:00.0", fake_library());
  ASSERT_EQ(state.other_processes.size(), 19u);
  EXPECT_EQ(state.other_processes[0].pid, 900000001);
  EXPECT_EQ(state.other_processes[0].used, std::nullopt);
  EXPECT_EQ(state.other_processes[1].used, Bytes(1 << 30));
}

TEST(Nvml, SaysWhyNothingIsKnown) {
  EXPECT_EQ(read_gpu_state("0000:01:00.0", fake_library()).problem,
            "NVML knows no GPU at 0000:01:00.0: Not Found");
  NvmlFunctions missing;
  missing.problem = "libnvidia-ml.so.1 was not found";
  EXPECT_EQ(read_gpu_state("0000:3B:00.0", missing).problem, missing.problem);
}

TEST(Nvml, LoadsOrSaysWhyNot) {
  const NvmlFunctions& library = nvml();
  EXPECT_EQ(library.is_loaded(), library.processes != nullptr && library.problem.empty());
}

TEST(GpuWatch, ThreadKeepsExtremesAndEveryReasonThatWasSeen) {
  clock_now = 1980;
  const NvmlFunctions library = fake_library();
  GpuWatch watch("0000:3B:00.0", library, std::chrono::milliseconds(1));
  const auto wait_for_looks = [](int count) {
    const int wanted = looks_at_clock + count;
    while (looks_at_clock < wanted) std::this_thread::yield();
  };
  wait_for_looks(2);  // the second has begun, so the first has been kept
  clock_now = 1410;
  wait_for_looks(2);
  const GpuLoad load = watch.finish();
  EXPECT_GE(load.looks, 2);
  EXPECT_EQ(load.lowest_sm_clock_mhz, 1410);
  EXPECT_EQ(load.highest_sm_clock_mhz, 1980);
  EXPECT_EQ(load.throttle_bits, 0x4u);
  EXPECT_DOUBLE_EQ(load.mean_watts.value(), 698.5);
  EXPECT_EQ(watch.finish().looks, load.looks) << "a watch that has ended looks no more";
}

}  // namespace
}  // namespace brrr
