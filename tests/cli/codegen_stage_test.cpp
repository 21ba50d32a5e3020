// `brrr explain --stage codegen` shows what a GPU would run, on a machine without one; --device names where
// a command runs, and says so where there is no such device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "brrr/device/gpu_info.h"
#include "support/h200.h"
#include "support/run_program.h"

namespace brrr {
namespace {

using testing::HasSubstr;

TEST(ExplainCodegen, ShowsKernelsAsText) {
  const Outcome text = run("explain --model gpt2-tiny --stage codegen --without gelu_epilogue");
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.output, HasSubstr("extern \"C\" __global__ void"));
  EXPECT_THAT(text.output, HasSubstr("functors::Gelu"));
  const Outcome json = run("explain --model gpt2-tiny --stage codegen --json");
  const auto kernels = nlohmann::json::parse(json.output);
  ASSERT_GT(kernels.size(), 5U);
  for (const auto& kernel : kernels) {
    EXPECT_FALSE(kernel["source"].get<std::string>().empty());
    EXPECT_GT(kernel["launches"][0]["blocks"], 0);
  }
}

TEST(ExplainCodegen, PlansForAGpuWithoutOne) {
  const Outcome plan =
      run("explain --model gpt2-tiny --device cuda --stage plan --hardware H100 --json");
  EXPECT_EQ(plan.status, 0);
  EXPECT_GT(nlohmann::json::parse(plan.output)["arena_bytes"], 0);
}

TEST(DeviceOption, NamesADeviceThatIsThere) {
  EXPECT_NE(run("bench cos --device tpu").status, 0);
  if (!list_gpus().gpus.empty()) GTEST_SKIP() << "there is a GPU";
  const Outcome missing = run("bench cos --elements 65536 --device cuda");
  EXPECT_NE(missing.status, 0);
  EXPECT_THAT(missing.output, HasSubstr("--device cuda"));
}

}  // namespace
}  // namespace brrr
