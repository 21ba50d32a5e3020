// Training in low precision on a GPU: finite and falling losses, near those of the same policy on the cpu, the same
// bits twice; scales that move on the device, and an overflow that changes nothing there.
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/autodiff/grad.h"
#include "brrr/compiler/precision/range_loss.h"
#include "brrr/device/default_device.h"
#include "brrr/ops/create/copy.h"
#include "brrr/optim/optimizer.h"
#include "brrr/runtime/compile.h"
#include "cuda/gpu.h"
#include "cuda/low_precision.h"
#include "support/square_tokens.h"
#include "support/values_of.h"

namespace brrr {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};

struct Mode {
  const char* name;
  compiler::PrecisionOptions precision;
  DType parameters = DType::f32;
  double first, all;  // how near the cpu the loss of the first step is, and that of every step
};

// What differs is the order of sums, and what follows from a number that is rounded the other way: by 4 bits of
// mantissa in e4m3, 8 in bf16, 11 in f16.
const Mode kModes[] = {
    {"tf32", {.matmul = compiler::MatmulPrecision::tf32}, DType::f32, 1e-4, 0.005},
    {"bf16 mixed", {.policy = compiler::Precision::bf16_mixed}, DType::f32, 1e-3, 0.02},
    {"bf16 pure", {}, DType::bf16, 4e-3, 0.03},
    {"f16", {.policy = compiler::Precision::f16_mixed}, DType::f32, 2e-4, 0.01},
    {"f16 unscaled",
     {.policy = compiler::Precision::f16_mixed,
      .loss_scale = {.kind = compiler::LossScaling::none}},
     DType::f32,
     2e-4,
     0.01},
    {"fp8", {.policy = compiler::Precision::fp8_mixed}, DType::f32, 5e-3, 0.1}};

class Training {
 public:
  Training(const Mode& mode, Device device)
      : device_scope_(device),
        parameter_scope_({.dtype = mode.parameters}),
        model_(kSmallGpt, random_),
        optimizer_(model_.named_parameters(), AdamWOptions{.weight_decay = 0.1}),
        function_(
            [this](std::span<const Tensor> x) -> Tensors {
              const Tensor loss = model_.loss(x[0], x[1]);
              std::vector<Tensor> grads = grad(loss, optimizer_.parameters());
              clip_global_norm(grads, 1.0);
              optimizer_.update(grads, 3e-3);
              return {loss.detach()};
            },
            {.precision = mode.precision, .device = device}) {
    const SquareTokens batch({2, 32});
    inputs_ = {to(batch.tokens, device), to(batch.targets, device)};
    EXPECT_EQ(to_text(inputs_[0].device()), to_text(device));
  }

  double step() { return program().run(inputs_)[0].item<double>(); }
  std::vector<double> losses(int steps) {
    std::vector<double> found;
    for (int i = 0; i < steps; ++i) found.push_back(step());
    return found;
  }
  runtime::Executable& program() { return function_.executable(inputs_); }
  std::span<const Tensor> inputs() const { return inputs_; }

  std::vector<float> state(std::string_view name) { return state_of(program(), name); }
  std::vector<float> contents() const {
    return values_of({model_.named_parameters(), optimizer_.states()});
  }

 private:
  DeviceScope device_scope_;
  ParameterScope parameter_scope_;
  Random random_{3};
  Gpt2 model_;
  AdamW optimizer_;
  runtime::CompiledFunction function_;
  std::vector<Tensor> inputs_;
};

constexpr int kSteps = 20;

TEST(CudaPrecision, TrainsAsOnTheCpu) {
  BRRR_NEEDS_GPU();
  for (const Mode& mode : kModes) {
    const std::vector<double> cpu = Training(mode, Device::cpu()).losses(kSteps),
                              gpu = Training(mode, kGpu).losses(kSteps);
    EXPECT_LT(gpu.back(), 0.8 * gpu.front()) << mode.name << ": the loss does not fall";
    EXPECT_NEAR(gpu[0], cpu[0], mode.first * cpu[0]) << mode.name;
    for (int i = 0; i < kSteps; ++i) {
      const auto n = static_cast<size_t>(i);
      ASSERT_TRUE(std::isfinite(gpu[n])) << mode.name << ", step " << i;
      EXPECT_NEAR(gpu[n], cpu[n], mode.all * cpu[n]) << mode.name << ", step " << i;
    }
  }
}

// Captured and replayed: the scales of a step are those that the step before left on the device.
TEST(CudaPrecision, HasTheSameBitsTwice) {
  BRRR_NEEDS_GPU();
  for (const Mode& mode : kModes) {
    Training first(mode, kGpu);
    const std::vector<double> losses = first.losses(kSteps);
    const std::vector<float> contents = first.contents();
    Training second(mode, kGpu);
    EXPECT_EQ(second.losses(kSteps), losses) << mode.name;
    EXPECT_EQ(second.contents(), contents) << mode.name;
  }
}

TEST(CudaPrecision, AnOverflowChangesNothingButTheScale) {
  BRRR_NEEDS_GPU();
  Training training({"f16", overflowing_f16(), DType::f32, 0, 0}, kGpu);
  const double scale = expect_overflows_halve_the_scale(training, [&] { return training.step(); });
  for (int i = 0; i < 2; ++i) training.step();
  EXPECT_EQ(training.state("loss_scale")[0], 2 * scale) << "three good steps double it";
}

TEST(CudaPrecision, ScalesOfEightBitsFollowTheirOperands) {
  BRRR_NEEDS_GPU();
  const Mode mode{"fp8", {.policy = compiler::Precision::fp8_mixed}, DType::f32, 0, 0};
  constexpr int kRuns = 3;
  const auto scales_on = [&](Device device) {
    Training training(mode, device);
    training.losses(kRuns);
    return eight_bit_scales(training.program());
  };
  expect_scales(scales_on(kGpu), scales_on(Device::cpu()), kRuns);
}

// What the interpreter counts on the device is what it counts on the cpu, roundings of sums apart.
TEST(CudaPrecision, CountsRangeLossesThere) {
  BRRR_NEEDS_GPU();
  const Mode mode{"f16 unscaled",
                  {.policy = compiler::Precision::f16_mixed,
                   .loss_scale = {.kind = compiler::LossScaling::none}},
                  DType::f32,
                  0,
                  0};
  Training training(mode, kGpu);
  const std::vector<float> before = training.contents();
  const compiler::RangeLosses lost =
      compiler::count_range_losses(training.program().graph(), training.inputs());
  EXPECT_GT(lost.forward.stored, 10'000);
  EXPECT_GT(lost.backward.stored, 10'000);
  EXPECT_GT(lost.backward.underflows, 0) << "f16 loses small gradients";
  EXPECT_EQ(lost.all().overflows, 0);
  EXPECT_EQ(training.contents(), before) << "nothing is written";
}

}  // namespace
}  // namespace brrr
