// Micro-batches in low precision on a GPU: steps of several parts learn as steps of one and as on the cpu, the same bits
// twice, with one loss scale and one history a step. The loop is launched, captured and replayed.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "brrr/cost/tensor_core_use.h"
#include "brrr/device/default_device.h"
#include "brrr/nn/models.h"
#include "brrr/ops/control/repeat.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/compile.h"
#include "brrr/train/step.h"
#include "cuda/gpu.h"
#include "cuda/low_precision.h"
#include "support/square_tokens.h"
#include "support/values_of.h"

namespace brrr {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};
constexpr int kSteps = 20;

struct Mode {
  const char* name;
  compiler::PrecisionOptions precision;
  double cut, all;  // how near one part the losses of several are, and how near the cpu
};

// Two roundings meet: sums in another order, and what is rounded the other way for it, by 4 bits of mantissa in e4m3,
// 8 in bf16, 11 in f16.
const Mode kModes[] = {{"bf16", {.policy = compiler::Precision::bf16_mixed}, 0.01, 0.02},
                       {"f16", {.policy = compiler::Precision::f16_mixed}, 0.005, 0.01},
                       {"f16, attention in f32",
                        {.policy = compiler::Precision::f16_mixed,
                         .overrides = {{"h.*.attn", compiler::Precision::f32}}},
                        0.005,
                        0.01},
                       {"f16, a fixed scale",
                        {.policy = compiler::Precision::f16_mixed,
                         .loss_scale = {.kind = compiler::LossScaling::fixed, .initial = 1024}},
                        0.005,
                        0.01},
                       {"fp8", {.policy = compiler::Precision::fp8_mixed}, 0.05, 0.1},
                       {"fp8, the head in bf16",
                        {.policy = compiler::Precision::fp8_mixed,
                         .overrides = {{"head", compiler::Precision::bf16_mixed}}},
                        0.05,
                        0.1}};

// 8 rows of 32 tokens, in parts of 2 at least: multiples of 16, as 8-bit products ask.
class Training {
 public:
  Training(const compiler::PrecisionOptions& precision, Device device, int64_t parts)
      : device_scope_(device),
        model_(make_model(kSmallGpt, random_)),
        optimizer_(model_->named_parameters(), AdamWOptions{.weight_decay = 0.1}),
        schedule_({.shape = ScheduleShape::constant, .rate = 3e-3, .steps = 100}),
        step_(*model_, optimizer_, nullptr, schedule_, options_of(precision, device, parts)) {
    const SquareTokens squares({8, 32});
    batch_.inputs = to(squares.tokens, device);
    batch_.targets = to(squares.targets, device);
  }

  training::StepResult step() { return step_.run(batch_, next_++); }
  std::vector<double> losses(int steps) {
    std::vector<double> found;
    for (int i = 0; i < steps; ++i) found.push_back(step().loss);
    return found;
  }
  runtime::Executable& program() { return step_.executable(batch_); }
  std::vector<float> state(std::string_view name) { return state_of(program(), name); }
  std::vector<float> contents() const {
    return values_of({model_->named_parameters(), optimizer_.states()});
  }

 private:
  static training::TrainStepOptions options_of(const compiler::PrecisionOptions& precision,
                                               Device device, int64_t parts) {
    training::TrainStepOptions options{.accumulate = parts};
    options.pipeline.precision = precision;
    options.pipeline.device = device;
    return options;
  }

  DeviceScope device_scope_;
  Random random_{3};
  std::unique_ptr<LanguageModel> model_;
  AdamW optimizer_;
  Schedule schedule_;
  training::TrainStep step_;
  Batch batch_;
  int64_t next_ = 0;
};

TEST(CudaMicroBatches, LearnAsOnePartAndAsOnTheCpu) {
  BRRR_NEEDS_GPU();
  for (const Mode& mode : kModes) {
    const std::vector<double> one = Training(mode.precision, kGpu, 1).losses(kSteps);
    EXPECT_LT(one.back(), 0.8 * one.front()) << mode.name << ": the loss does not fall";
    for (int64_t parts : {2, 4}) {
      const std::vector<double> gpu = Training(mode.precision, kGpu, parts).losses(kSteps),
                                cpu = Training(mode.precision, Device::cpu(), parts).losses(kSteps);
      for (size_t i = 0; i < gpu.size(); ++i) {
        ASSERT_TRUE(std::isfinite(gpu[i])) << mode.name << ", step " << i;
        EXPECT_NEAR(gpu[i], one[i], mode.cut * one[i])
            << mode.name << ", " << parts << " parts, step " << i;
        EXPECT_NEAR(gpu[i], cpu[i], mode.all * cpu[i])
            << mode.name << ", " << parts << " parts on the cpu, step " << i;
      }
    }
  }
}

// Norms of gradients of the first step, parameter by parameter: a scale that is left in a sum, or taken out twice, or a
// part that is added twice, shows here whatever the optimizer makes of it.
TEST(CudaMicroBatches, GradientsAreThoseOfOnePart) {
  BRRR_NEEDS_GPU();
  for (const Mode& mode : kModes) {
    const std::vector<double> one = Training(mode.precision, kGpu, 1).step().grad_norms,
                              four = Training(mode.precision, kGpu, 4).step().grad_norms;
    ASSERT_EQ(four.size(), one.size());
    for (size_t i = 0; i < one.size(); ++i)
      EXPECT_NEAR(four[i], one[i], 0.02 * one[i] + 1e-7) << mode.name << ", parameter " << i;
  }
}

TEST(CudaMicroBatches, HaveTheSameBitsTwice) {
  BRRR_NEEDS_GPU();
  for (const Mode& mode : kModes) {
    Training first(mode.precision, kGpu, 4), second(mode.precision, kGpu, 4);
    EXPECT_EQ(first.losses(kSteps), second.losses(kSteps)) << mode.name;
    EXPECT_EQ(first.contents(), second.contents()) << mode.name;
  }
}

TEST(CudaMicroBatches, AnOverflowHalvesTheScaleOnceAndChangesNothingElse) {
  BRRR_NEEDS_GPU();
  Training training(overflowing_f16(), kGpu, 4);
  std::vector<bool> applied;
  double scale = expect_overflows_halve_the_scale(training, [&] {
    const training::StepResult result = training.step();
    applied.push_back(result.applied);
    return result.loss;
  });
  for (size_t i = 0; i < applied.size(); ++i)
    EXPECT_EQ(applied[i], i + 1 == applied.size()) << "step " << i << " of " << applied.size();
  for (int i = 0, good = 1; i < 12; ++i) {  // three good steps double it
    const bool is_good = training.step().applied;
    good = is_good ? good + 1 : 0;
    scale *= !is_good ? 0.5 : good == 3 ? 2 : 1;
    good %= 3;
    EXPECT_EQ(training.state("loss_scale")[0], scale) << "step " << i;
    EXPECT_EQ(training.state("loss_scale.good_steps")[0], good) << "step " << i;
  }
}

TEST(CudaMicroBatches, HistoriesOfEightBitsGoOnByStepsAndHoldTheLargestPart) {
  BRRR_NEEDS_GPU();
  constexpr int kRuns = 3;
  const auto scales_of = [](int64_t parts) {
    Training training({.policy = compiler::Precision::fp8_mixed}, kGpu, parts);
    training.losses(kRuns);
    return eight_bit_scales(training.program());
  };
  expect_scales(scales_of(4), scales_of(1), kRuns);
}

TEST(CudaMicroBatches, ProductsOfBodiesAreEightBits) {
  BRRR_NEEDS_GPU();
  Training training({.policy = compiler::Precision::fp8_mixed}, kGpu, 4);
  int products = 0;
  for (const compiler::Kernel& kernel : training.program().kernels().kernels) {
    if (!kernel.body) continue;
    for (const compiler::Kernel& inner : kernel.body->list.kernels) {
      const auto use = cost::tensor_cores_of(inner, {.major = 9, .minor = 0});
      if (!use || inner.op == &attention_op || inner.op == &attention_backward_op) continue;
      ++products;
      EXPECT_EQ(use->mark(), "fp8") << inner.name;
    }
  }
  EXPECT_EQ(products, 3 * (4 * 2 + 1));
}

// The rows of the second body begin at no multiple of 16 bytes in the vector of all scales.
TEST(CudaMicroBatches, OperandsOutsideAndInTwoBodiesShareTheStates) {
  BRRR_NEEDS_GPU();
  const DeviceScope scope(kGpu);
  const Tensor w = full({16, 16}, 2.0), v = full({16, 16}, 3.0), u = full({16, 16}, 5.0);
  runtime::CompiledFunction f(
      [&](std::span<const Tensor> in) -> Tensors {
        const Tensor &x = in[0], &n = in[1];
        const Tensor before = matmul(x[0], w);
        const Tensor first =
            repeat(n, {x}, [&](const Tensor& x_i) { return matmul(x_i * 7.0, v); })[0];
        const Tensor second = repeat(n, {x}, [&](const Tensor& x_i) { return matmul(x_i, u); })[0];
        return {before, first, second, matmul(x[0] * 11.0, w)};
      },
      {.precision = {.policy = compiler::Precision::fp8_mixed}, .device = kGpu});
  const std::vector<Tensor> inputs{ones({3, 16, 16}),
                                   full({}, 3.0, {.dtype = DType::i64, .device = kGpu})};
  const double expected[] = {32, 3 * 336, 3 * 80, 352};
  for (int run = 0; run < 4; ++run) {  // the first sets the scales; then captured and replayed
    const Tensors results = f.executable(inputs).run(inputs);
    for (int i = 0; i < 4; ++i) {
      for (float each : to(results[i], Device::cpu()).to_vector<float>())
        ASSERT_NEAR(each, expected[i], 0.01 * expected[i]) << "run " << run << ", result " << i;
    }
  }
  for (const graph::StateSlot& state : f.executable(inputs).graph().states) {
    if (state.name != "fp8.e4m3.amax") continue;
    const std::vector<float> amax = to(state.tensor, Device::cpu()).to_vector<float>();
    std::vector<float> newest;
    for (size_t i = 0; i < amax.size(); i += 16) newest.push_back(amax[i]);
    EXPECT_EQ(newest, (std::vector<float>{1, 2, 7, 3, 1, 5, 11}));
  }
}

}  // namespace
}  // namespace brrr
