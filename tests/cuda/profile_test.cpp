// Profiles on a GPU: times of kernels, copies and gaps, and kernels that are timed by themselves.
#include "brrr/plan/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/cost/calibrate_cuda.h"
#include "brrr/cost/standalone_kernel.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/op_list.h"
#include "brrr/plan/gpu_rates.h"
#include "brrr/report/gpu_step.h"
#include "brrr/train/setup.h"
#include "cuda/gpu.h"

namespace brrr {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};

// A step of two layers on the GPU, with its batch on the host.
struct SmallStep {
  training::TrainingParts parts;
  Batch batch;
  std::vector<Tensor> inputs;

  explicit SmallStep(compiler::Precision precision,
                     const training::StepSizes& sizes = {.batch = 4, .seq = 256, .layers = 2}) {
    training::StepSpec spec = training::named_step("gpt2-124m", sizes, compiler::target_of(kGpu));
    spec.pipeline.precision.policy = precision;
    spec.pipeline.precision.matmul = compiler::MatmulPrecision::ieee;
    parts = training::make_parts(spec);
    batch = training::make_batch(spec);
    inputs = parts.step->inputs_of(batch);
  }
  runtime::Executable& program() const { return parts.step->executable(batch); }
};

TEST(CudaProfile, SplitsTheStepIntoKernelsCopiesAndGaps) {
  BRRR_NEEDS_GPU();
  const SmallStep step(compiler::Precision::bf16_mixed);
  runtime::Executable& program = step.program();
  const plan::StepTimes times = plan::measure_steps(program, step.inputs, {.steps = 5});
  ASSERT_TRUE(times.gpu.has_value());
  const plan::Profile profile = plan::make_profile(program.kernels(), program.plan(), times,
                                                   plan::own_gpu_rates(hardware::find_gpu("h200")));
  ASSERT_EQ(profile.gpu->copies.size(), 2U) << "inputs in one block, the results in another";
  const runtime::HostCopy &in = profile.gpu->copies[0], &out = profile.gpu->copies[1];
  EXPECT_TRUE(in.is_to_device && in.is_pinned && !out.is_to_device && out.is_pinned);
  EXPECT_GE(in.bytes, 2 * 4 * 256 * 8) << "tokens and targets";
  EXPECT_GT(in.seconds, 0);
  EXPECT_GT(times.last.clock_seconds, 0) << "of two events with nothing between them";
  EXPECT_EQ(times.last.seconds.size(), program.kernels().kernels.size());
  EXPECT_EQ(profile.gpu->launches, 1) << "the whole step is one captured graph";
  EXPECT_GT(profile.gpu->device_seconds, 0);
  EXPECT_THAT(report::gpu_step_text(profile), testing::HasSubstr("gaps between them"));
}

// Inputs that have no slot are copied by the driver out of pageable memory.
TEST(CudaProfile, TellsLargeInputsAsPageable) {
  BRRR_NEEDS_GPU();
  constexpr int64_t kCount = int64_t{4} << 20;
  auto twice = runtime::compile([](const Tensor& x) { return x + x; });
  const Tensor here = ones({kCount}, {.device = Device::cpu()});
  const Tensor there[] = {to(here, kGpu)};
  runtime::Executable& program = twice.function().executable(there);
  runtime::KernelTimes times;
  program.run_timed({&here, 1}, times);
  ASSERT_GE(times.copies.size(), 1U);
  EXPECT_FALSE(times.copies[0].is_pinned);
  EXPECT_TRUE(times.copies[0].is_to_device);
  EXPECT_EQ(times.copies[0].bytes, kCount * 4);
}

TEST(CudaProfile, MarksProducts) {
  BRRR_NEEDS_GPU();
  if (cuda::device_facts(0).major < 8) GTEST_SKIP() << "tensor cores take bf16 since Ampere";
  for (const compiler::Precision precision :
       {compiler::Precision::f32, compiler::Precision::bf16_mixed}) {
    const SmallStep step(precision);
    runtime::Executable& program = step.program();
    const plan::StepTimes times = plan::measure_steps(program, step.inputs, {.steps = 1});
    const plan::Profile profile = plan::make_profile(
        program.kernels(), program.plan(), times, plan::own_gpu_rates(hardware::find_gpu("h200")));
    int marked = 0, full = 0;
    for (const plan::KernelProfile& kernel : profile.kernels) {
      EXPECT_EQ(kernel.tensor_cores.has_value(),
                kernel.kernel_class == cost::KernelClass::contraction)
          << kernel.label;
      marked += kernel.tensor_cores.has_value() ? 1 : 0;
      full += kernel.tensor_cores && kernel.tensor_cores->how == kernels::TensorCores::full ? 1 : 0;
    }
    EXPECT_GT(marked, 20);
    EXPECT_EQ(full, precision == compiler::Precision::bf16_mixed ? marked : 0);
  }
}

TEST(CudaCalibrate, TimesAKernelByItself) {
  BRRR_NEEDS_GPU();
  const auto product = [](int64_t n) {
    return cost::make_kernel(matmul_op, {cost::operand(DType::bf16, Shape{4096, n}),
                                         cost::operand(DType::bf16, Shape{n, n})});
  };
  const std::optional<double> small = cost::seconds_alone(product(1024), kGpu),
                              large = cost::seconds_alone(product(4096), kGpu);
  ASSERT_TRUE(small && large);
  EXPECT_GT(*large, 4 * *small) << "16 times the FLOPs";
  EXPECT_LT(*large, 64 * *small);
  const compiler::Kernel huge = cost::make_kernel(
      matmul_op, {cost::operand(DType::bf16, Shape{int64_t{1} << 20, int64_t{1} << 20}),
                  cost::operand(DType::bf16, Shape{int64_t{1} << 20, 8})});
  EXPECT_FALSE(cost::seconds_alone(huge, kGpu)) << "2 TB fit nowhere";
}

// After calibration with its own products a step takes what was predicted, within the band of `napkin verify`. A small
// model is launched more than it is computed, so the band here is twice as wide.
TEST(CudaCalibrate, PredictsAStep) {
  BRRR_NEEDS_GPU();
  const SmallStep step(compiler::Precision::bf16_mixed,
                       {.batch = 16, .seq = 1024, .layers = 2, .vocab = 50304});
  runtime::Executable& program = step.program();
  const plan::StepTimes times = plan::measure_steps(program, step.inputs, {.steps = 5});
  const hardware::Rates rates = cost::calibrate_cuda(
      kGpu, {.rounds = 3, .programs = {&program.kernels()}, .programs_name = "this step"});
  EXPECT_TRUE(rates.calibrated);
  for (const char* family :
       {"matmul.nt.bf16", "attention.bf16", "attention_backward.bf16", "matmul_sums.bf16",
        "layer_norm.bf16", "transfer.to_device.pinned", "peak.bf16", "scale.matmul.bf16"})
    EXPECT_NE(rates.find(family), nullptr) << family;
  const hardware::Rates read = hardware::parse_rates(hardware::to_json(rates), "what was measured");
  const plan::Profile profile = plan::make_profile(program.kernels(), program.plan(), times, read);
  EXPECT_NEAR(profile.predicted_seconds, profile.step_seconds, 0.2 * profile.step_seconds);
  for (const plan::KernelProfile& kernel : profile.kernels) {
    if (kernel.kernel_class != cost::KernelClass::contraction) continue;
    EXPECT_NEAR(kernel.predicted.seconds(), kernel.seconds, 0.3 * kernel.seconds + 20e-6)
        << kernel.label;
  }
}

}  // namespace
}  // namespace brrr
