// Rates of GPUs that nobody calibrated, and how near they come to a step that was measured.
#include "brrr/plan/gpu_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "brrr/plan/profile.h"
#include "brrr/runtime/stages.h"
#include "support/error_of.h"
#include "support/h200.h"
#include "support/plain_step.h"

namespace brrr {
namespace {

using testing::HasSubstr;

double largest(const hardware::Rates& rates, const char* family) {
  return rates.grid(family).largest();
}

TEST(OwnGpuRates, HaveEachArithmetic) {
  const hardware::Rates rates = plan::own_gpu_rates(hardware::find_gpu("h100"));
  EXPECT_FALSE(rates.calibrated);
  EXPECT_THAT(rates.source, HasSubstr("hardware table: h100-sxm"));
  EXPECT_DOUBLE_EQ(rates.number("peak.f32"), 67.5e12);
  EXPECT_DOUBLE_EQ(rates.number("peak.bf16"), 989.5e12);
  EXPECT_DOUBLE_EQ(rates.number("peak.tf32"), 494.5e12);
  // The same share of every peak.
  const double share = largest(rates, "matmul.nt.bf16") / 989.5e12;
  EXPECT_GT(share, 0.6);
  EXPECT_LT(share, 1);
  EXPECT_NEAR(largest(rates, "matmul.tn.tf32") / 494.5e12, share, 1e-9);
  EXPECT_NEAR(largest(rates, "matmul.nn") / 67.5e12, share, 1e-9);
  EXPECT_LT(largest(rates, "attention_backward.bf16"), largest(rates, "attention.bf16"));
  EXPECT_THAT(error_of([] { hardware::find_gpu("abacus"); }), HasSubstr("known are"));
}

TEST(OwnGpuRates, LeaveOutWhatADeviceHasNot) {
  const hardware::Rates rates = plan::own_gpu_rates(hardware::find_gpu("a100-80"));
  EXPECT_EQ(rates.find("matmul.nt.fp8"), nullptr);
  EXPECT_NE(rates.find("matmul.nt.bf16"), nullptr);
}

// Times of kinds of kernels in a step of GPT-2 124M (64 x 1024 tokens, bf16, vocabulary 50304) on an H200, in ms.
TEST(OwnGpuRates, ComeNearAMeasuredStep) {
  const std::map<std::string, double> measured = {{"attention_backward [64, 12, 1024, 64]", 15.1},
                                                  {"matmul [65536, 768]", 10.5},
                                                  {"matmul_gelu_backward [64, 1024, 3072]", 7.4},
                                                  {"matmul_add [64, 1024, 768]", 7.2},
                                                  {"matmul_gelu [64, 1024, 3072]", 6.8},
                                                  {"linear [8192, 50304]", 6.4},
                                                  {"matmul_add [50304, 768]", 5.9},
                                                  {"attention [64, 12, 1024, 64]", 5.4},
                                                  {"matmul [3072, 768]", 5.3},
                                                  {"linear [64, 1024, 2304]", 4.3}};
  // The step as it was when it was measured: without the largest activations of layers, and with all that is quicker
  // to keep than to recompute.
  compiler::PipelineOptions pipeline;
  pipeline.precision.policy = compiler::Precision::bf16_mixed;
  pipeline.device = Device::null(), pipeline.target = h200();
  const runtime::PlannedProgram program = training::plan_step(
      plain_step("gpt2-124m", {.batch = 64, .seq = 1024, .vocab = 50304}, pipeline));
  const cost::Prediction prediction =
      cost::predict(program.kernels, program.plan, plan::own_gpu_rates(hardware::find_gpu("h200")));
  EXPECT_NEAR(1e3 * prediction.seconds(), 116.4, 0.15 * 116.4);
  std::map<std::string, double> predicted;
  for (size_t k = 0; k < program.kernels.kernels.size(); ++k)
    predicted[plan::kernel_label(program.kernels.kernels[k])] +=
        1e3 * prediction.kernels[k].seconds();
  for (const auto& [label, milliseconds] : measured) {
    ASSERT_TRUE(predicted.contains(label)) << label;
    EXPECT_NEAR(predicted[label] / milliseconds, 1, 0.3) << label;
  }
}

}  // namespace
}  // namespace brrr
