// The claim that a plan is the program: the kernels that the planner lists for an H200 are those that `brrr train`
// compiles for it, one by one. No GPU is needed.
#include "brrr/plan/cluster/run_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/plan/gpu_rates.h"
#include "brrr/train/plan.h"
#include "support/error_of.h"
#include "support/h200.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char* model;
  compiler::Precision precision;
  int64_t accumulate;
};

plan::RunQuestion question(const Case& c, int64_t micro_batch, int64_t seq) {
  plan::RunQuestion q;
  q.model_name = c.model;
  q.model = model_preset(c.model);
  q.gpu = "h200";
  q.tokens = 1e9;
  q.seq = seq;
  q.micro_batch = micro_batch;
  q.global_batch = micro_batch * c.accumulate;
  q.precision = c.precision;
  q.recompute = compiler::RematPolicy::selective;  // the default of `brrr train`
  return q;
}

// What `brrr train --device cuda:h200 --dry-run --kernels` prints.
std::vector<cost::KernelLine> kernels_of_run(const Case& c, int64_t batch, int64_t seq) {
  runs::TrainConfig config = training::default_step_settings(batch, seq);
  config.train.precision = c.precision;
  config.train.accumulate = c.accumulate;
  return training::plan_training(config, model_preset(c.model), h200(),
                                 plan::own_gpu_rates(hardware::find_gpu("h200")), {})
      .launches;
}

std::string text_of(const cost::KernelLine& line) {
  return join_text(line.phase, " ", line.name, " ", line.dtype, line.shape, " x", line.count);
}

class RunKernels : public ::testing::TestWithParam<Case> {};

TEST_P(RunKernels, AreThoseThatTrainCompiles) {
  constexpr int64_t kBatch = 4, kSeq = 64;
  const std::vector<cost::KernelLine> planned = plan::run_kernels(
                                          plan::answer(question(GetParam(), kBatch, kSeq))),
                                      run = kernels_of_run(GetParam(), kBatch, kSeq);
  ASSERT_GT(planned.size(), 50U);
  ASSERT_EQ(planned.size(), run.size());
  for (size_t i = 0; i < run.size(); ++i)
    ASSERT_EQ(text_of(planned[i]), text_of(run[i])) << "launch " << i;
}

INSTANTIATE_TEST_SUITE_P(
    Models, RunKernels,
    ::testing::Values(Case{"gpt2-124m", compiler::Precision::bf16_mixed, 1},
                      Case{"gpt2-124m", compiler::Precision::bf16_mixed, 4},
                      Case{"gpt2-124m", compiler::Precision::fp8_mixed, 1},
                      Case{"gpt2-124m", compiler::Precision::fp8_mixed, 4},
                      Case{"qwen2.5-0.5b", compiler::Precision::bf16_mixed, 1},
                      Case{"qwen2.5-0.5b", compiler::Precision::bf16_mixed, 4},
                      Case{"qwen2.5-0.5b", compiler::Precision::fp8_mixed, 1},
                      Case{"qwen2.5-0.5b", compiler::Precision::fp8_mixed, 4},
                      Case{"llama-moe-tiny", compiler::Precision::bf16_mixed, 1},
                      Case{"llama-moe-tiny", compiler::Precision::bf16_mixed, 4},
                      Case{"llama-moe-tiny", compiler::Precision::fp8_mixed, 1},
                      Case{"llama-moe-tiny", compiler::Precision::fp8_mixed, 4}),
    [](const auto& param_info) {
      std::string name = join_text(param_info.param.model, "_",
                                   compiler::precision_name(param_info.param.precision), "_x",
                                   param_info.param.accumulate);
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      return name;
    });

// A GPU's program and not the CPU's: matmuls have epilogues, the head is padded, heads are written as rows.
TEST(RunKernelsOfAGpu, HaveWhatOnlyAGpuHas) {
  const Case c{"gpt2-124m", compiler::Precision::bf16_mixed, 1};
  const std::vector<cost::KernelLine> lines =
      plan::run_kernels(plan::answer(question(c, 64, 1024)));
  const auto has = [&](std::string_view name, std::string_view shape) {
    return std::any_of(lines.begin(), lines.end(), [&](const cost::KernelLine& line) {
      return line.name == name && line.shape.find(shape) != std::string::npos;
    });
  };
  EXPECT_TRUE(has("matmul_gelu", "3072"));
  EXPECT_TRUE(has("classifier", ""));
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const cost::KernelLine& line) {
    return line.shape.find("50304") != std::string::npos;
  })) << "the vocabulary of 50257 is padded to whole tiles";
}

TEST(RunKernelsOfAGpu, AreRefusedForWhatBrrrDoesNotRun) {
  const Case c{"gpt2-124m", compiler::Precision::bf16_mixed, 1};
  plan::RunQuestion q = question(c, 1, 64);
  q.system.framework = plan::Framework::eager;
  EXPECT_THAT(error_of([&] { plan::run_step(q, 1); }), HasSubstr("brrr's own program"));
  q = question(c, 1, 64);
  q.layout.pp = 2;
  EXPECT_THAT(error_of([&] { plan::run_step(q, 1); }), HasSubstr("leave --pp and --cp out"));
}

}  // namespace
}  // namespace brrr
