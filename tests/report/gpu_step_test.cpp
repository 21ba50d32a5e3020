// The part of a profile that a GPU adds: where the step goes, copies, tensor cores.
#include "brrr/report/gpu_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace brrr {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two kernels of 4 ms in a step of 10 ms, of which the GPU has 9.5.
plan::Profile profile() {
  plan::KernelProfile product{.label = "matmul [8, 8]", .seconds = 4e-3};
  product.tensor_cores = kernels::TensorCoreUse{kernels::TensorCores::full, "bf16", ""};
  plan::KernelProfile head{.label = "linear [8, 50257]", .seconds = 4e-3};
  head.tensor_cores = kernels::TensorCoreUse{kernels::TensorCores::slower, "bf16", "rows are odd"};
  plan::Profile result{.kernels = {product, head},
                       .step_seconds = 10e-3,
                       .kernel_seconds = 8e-3,
                       .predicted_seconds = 9e-3,
                       .predicted_overhead = 5e-3};
  result.gpu = plan::GpuStepTimes{
      .generation = {9, 0},
      .device_seconds = 9.5e-3,
      .copies = {{.is_to_device = true, .is_pinned = true, .bytes = 1'000'000, .seconds = 20e-6},
                 {.is_to_device = true, .is_pinned = false, .bytes = 8'000'000, .seconds = 1e-3},
                 {.is_to_device = false, .is_pinned = true, .bytes = 256, .seconds = 2e-6}},
      .launches = 1};
  return result;
}

TEST(GpuStep, SplitsTheStep) {
  const plan::Profile p = profile();
  EXPECT_NEAR(p.copy_seconds(), 1.022e-3, 1e-12);
  EXPECT_NEAR(p.gap_seconds(), 9.5e-3 - 8e-3 - 1.022e-3, 1e-12);
  EXPECT_NEAR(p.host_seconds(), 0.5e-3, 1e-12);
  const std::string text = report::gpu_step_text(p);
  EXPECT_THAT(text, HasSubstr("overhead: gaps between them on the GPU"));
  EXPECT_THAT(text, HasSubstr("239.00 us a kernel"));
  EXPECT_THAT(text, Not(HasSubstr("negative")));
}

TEST(GpuStep, TellsPinnedFromPageable) {
  const std::string text = report::gpu_step_text(profile());
  for (const char* part :
       {"host to device", "device to host", "pinned", "pageable", "1,000,000", "50.0", "8.0"})
    EXPECT_THAT(text, HasSubstr(part));
  plan::Profile none = profile();
  none.gpu->copies.clear();
  EXPECT_THAT(report::gpu_step_text(none), HasSubstr("No copy between host and device"));
}

TEST(GpuStep, SaysWhyTensorCoresAreNotUsedInFull) {
  const std::string text = report::gpu_step_text(profile());
  EXPECT_THAT(text, HasSubstr("linear [8, 50257]"));
  EXPECT_THAT(text, HasSubstr("rows are odd"));
  EXPECT_THAT(text, Not(HasSubstr("matmul [8, 8]"))) << "what is in order is not listed";
  EXPECT_THAT(text, HasSubstr("Tensor cores in full: 50.0 %"));
}

TEST(GpuStep, OwnsUpToGapsThatClocksHide) {
  plan::Profile p = profile();
  p.gpu->device_seconds = 8e-3;
  EXPECT_LT(p.gap_seconds(), 0);
  EXPECT_THAT(report::gpu_step_text(p), HasSubstr("Gaps are negative"));
}

TEST(GpuStep, HasAllOfItForPrograms) {
  const nlohmann::json json = report::gpu_step_json(profile());
  EXPECT_EQ(json["copies"].size(), 3U);
  EXPECT_EQ(json["copies"][1]["host_memory"], "pageable");
  EXPECT_DOUBLE_EQ(json["copies"][1]["bytes_per_second"], 8e9);
  EXPECT_NEAR(json["gap_seconds"].get<double>(), 0.478e-3, 1e-12);
  EXPECT_EQ(json["host_launches"], 1);
  EXPECT_FALSE(json["copies"][0].contains("predicted_seconds")) << "the rates have no bus";
  plan::Profile priced = profile();
  priced.predicted_copies = {1e-6, 2e-6, 3e-6};
  EXPECT_DOUBLE_EQ(report::gpu_step_json(priced)["copies"][2]["predicted_seconds"], 3e-6);
}

}  // namespace
}  // namespace brrr
