#include "brrr/report/gpu_state.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace brrr {
namespace {

GpuState busy_gpu() {
  GpuState state;
  state.sm_clock_mhz = 1410;
  state.max_sm_clock_mhz = 1980;
  state.watts = 698.5;
  state.limit_watts = 700;
  state.throttle_bits = 0x4;
  state.other_processes = {{.pid = 77, .used = Bytes(int64_t{2} << 30)}, {.pid = 78, .used = {}}};
  return state;
}

TEST(GpuStateText, ShowsClocksPowerReasonsAndOtherProcesses) {
  const std::string text = report::gpu_state_text(busy_gpu());
  for (const char* part : {"1410 MHz of 1980 MHz", "698.5 W of 700 W", "software power cap",
                           "process 77 holds 2 GiB", "process 78 holds an unknown amount"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_NE(text.find("not available"), std::string::npos) << "nobody told the temperature";
}

TEST(GpuStateText, SaysThatNothingIsAvailableAndWhy) {
  GpuState state;
  state.problem = "libnvidia-ml.so.1 was not found";
  EXPECT_EQ(report::gpu_state_text(state),
            "clocks, power and throttle reasons are not available: libnvidia-ml.so.1 was not "
            "found\n");
  EXPECT_EQ(report::gpu_state_json(state)["not_available_because"], state.problem);
  GpuLoad load;
  load.add(state);
  EXPECT_NE(report::gpu_load_text(load).find("not available"), std::string::npos);
}

TEST(GpuStateText, JsonHasNullForWhatTheDriverRefuses) {
  const nlohmann::json json = report::gpu_state_json(busy_gpu());
  EXPECT_EQ(json["throttle_reasons"], nlohmann::json({"software power cap"}));
  EXPECT_TRUE(json["celsius"].is_null());
  EXPECT_EQ(json["other_processes"][0]["bytes"], int64_t{2} << 30);
  GpuLoad load;
  load.add(busy_gpu());
  EXPECT_EQ(report::gpu_load_json(load)["lowest_sm_clock_mhz"], 1410);
}

}  // namespace
}  // namespace brrr
