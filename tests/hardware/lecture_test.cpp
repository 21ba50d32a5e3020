// Every number that the lecture on resource accounting derives, through the library.
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/brrr.h"
#include "brrr/hardware/hardware.h"
#include "brrr/hardware/mfu.h"

namespace brrr {
namespace {

constexpr Seconds kDay(86400.0);

struct Sizes {
  int64_t B, D, K;
};
constexpr Sizes kCpu{1024, 256, 64}, kGpu{16384, 32768, 8192};

// ---- motivating questions ---------------------------------------------------------------------

TEST(Lecture, Training70BOn15TTokensTakes144Days) {
  const Flops work = hardware::training_flops(70e9, 15e12);
  EXPECT_DOUBLE_EQ(work.value(), 6.3e24);
  const hardware::Cluster cluster{
      .promised = hardware::promised_rate("H100", DType::bf16).dense, .devices = 1024, .mfu = 0.5};
  const double days = hardware::run_time(work, cluster) / kDay;
  EXPECT_NEAR(work.value() / days, 4.37723136e22, 1e13);
  EXPECT_NEAR(days, 143.927, 5e-4);
}

TEST(Lecture, EightH100sHold40BParametersUnderNaiveAdamW) {
  constexpr int64_t kBytesPerParameter = 4 + 4 + (4 + 4);  // parameter, gradient, two moments
  EXPECT_EQ((hardware::device_memory("H100").size * 8).value() / kBytesPerParameter,
            40'000'000'000);
}

// ---- tensors and their bytes ------------------------------------------------------------------

TEST(Lecture, BytesAreElementsTimesElementSize) {
  const Tensor x = zeros({4, 8});
  EXPECT_EQ(x.dtype(), DType::f32);
  EXPECT_EQ(x.numel(), 32);
  EXPECT_EQ(x.bytes(), 128_B);
}

TEST(Lecture, AFeedForwardMatrixOfGpt3Takes2304MiB) {
  const Tensor ffn = empty({12288 * 4, 12288}, DType::f32, Device::null());
  EXPECT_EQ(ffn.bytes(), 2'415'919'104_B);
  EXPECT_EQ(ffn.bytes(), 2304_MiB);
}

TEST(Lecture, MovingAndMakingA32x32TensorRaisesTheLedgerBy8192Bytes) {
  const Bytes before = ledger(Device::null()).live();
  const Tensor moved = to(zeros({32, 32}), Device::null());
  const Tensor made = zeros({32, 32}, {.device = Device::null()});
  EXPECT_EQ(ledger(Device::null()).live() - before, 8192_B);
}

// ---- FLOPs, timing, MFU -----------------------------------------------------------------------

int64_t linear_flops(const Sizes& s, DType dtype, Device device) {
  const Tensor x = ones({s.B, s.D}, {.dtype = dtype, .device = device});
  const Tensor w = ones({s.D, s.K}, {.dtype = dtype, .device = device});
  CostCounter counter;
  matmul(x, w);
  return counter.total().flops;
}

TEST(Lecture, ALinearModelTakesTwoBDK) {
  EXPECT_EQ(linear_flops(kCpu, DType::f32, Device::cpu()), 33'554'432);
  EXPECT_EQ(linear_flops(kCpu, DType::f32, Device::null()), 33'554'432)
      << "the null device counts the same";
  EXPECT_EQ(linear_flops(kGpu, DType::bf16, Device::null()), 8'796'093'022'208) << "8.796093e12";
}

TEST(Lecture, IdealTimesOfTheLargeLinearModelOnAnH100) {
  const Flops work(linear_flops(kGpu, DType::bf16, Device::null()));
  EXPECT_NEAR(
      hardware::ideal_time(work, hardware::promised_rate("H100", DType::bf16).dense).value(),
      8.889e-3, 5e-7);
  EXPECT_NEAR(hardware::ideal_time(work, hardware::promised_rate("H100", DType::f32).dense).value(),
              130.3e-3, 5e-5);
}

TEST(Lecture, MfuOfARunAtTwiceTheIdealTimeIsOneHalf) {
  const Flops work(linear_flops(kGpu, DType::bf16, Device::null()));
  const FlopsPerSecond promised = hardware::promised_rate("H100", DType::bf16).dense;
  EXPECT_DOUBLE_EQ(hardware::mfu(work / (hardware::ideal_time(work, promised) * 2), promised), 0.5);
}

TEST(Lecture, ElementwiseOpsTakeOneFlopAnElement) {
  const Tensor x = ones({16, 32});
  CostCounter counter;
  x + x;
  EXPECT_EQ(counter.total().flops, 16 * 32);
}

TEST(Lecture, EightH100sForOneAndTwoWeeks) {
  const FlopsPerSecond eight = hardware::promised_rate("H100", DType::bf16).dense * 8;
  EXPECT_NEAR((eight * (kDay * 7)).value(), 4.7876e21, 5e16);
  EXPECT_NEAR((eight * (kDay * 14)).value(), 9.5752e21, 1e17);
}

// ---- gradients and their FLOPs ----------------------------------------------------------------

TEST(Lecture, GradientOfTheSmallExample) {
  const Tensor x = tensor({1, 2, 3}), w = ones({3});
  w.require_grad();
  const Tensor prediction = matmul(x, w);
  const Tensor loss = 0.5 * square(prediction - 5);
  loss.backward();
  EXPECT_EQ(prediction.item<float>(), 6);
  EXPECT_EQ(loss.item<float>(), 0.5);
  EXPECT_EQ(w.grad().to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(prediction.grad().defined()) << "not a leaf, and not retained";
}

TEST(Lecture, ARetainedGradientIsThere) {
  const Tensor x = tensor({1, 2, 3}), w = ones({3});
  w.require_grad();
  const Tensor prediction = matmul(x, w);
  prediction.retain_grad();
  const Tensor loss = 0.5 * square(prediction - 5);
  loss.backward();
  EXPECT_EQ(prediction.grad().item<float>(), 1);
}

struct StepFlops {
  int64_t forward, backward;
};
enum class InputGrad : bool { no, yes };

// x [B, D] @ w1 [D, D] @ w2 [D, K] under a mean square; the FLOPs of matrix products.
StepFlops two_layers(const Sizes& s, Device device, InputGrad input_grad) {
  const TensorOptions options{.device = device};
  const Tensor x = ones({s.B, s.D}, options), w1 = ones({s.D, s.D}, options),
               w2 = ones({s.D, s.K}, options);
  w1.require_grad();
  w2.require_grad();
  if (input_grad == InputGrad::yes) x.require_grad();
  CostCounter forward;
  const Tensor loss = mean(square(matmul(matmul(x, w1), w2)));
  const int64_t forward_flops = forward.contractions().flops;
  CostCounter backward;
  loss.backward();
  return {forward_flops, backward.contractions().flops};
}

TEST(Lecture, TwoLayersOnTheCpu) {
  const StepFlops with = two_layers(kCpu, Device::cpu(), InputGrad::yes);
  EXPECT_EQ(with.forward, 167'772'160) << "2BDD + 2BDK";
  EXPECT_EQ(with.backward, 335'544'320) << "4BDD + 4BDK, the lecture's count";
  const StepFlops without = two_layers(kCpu, Device::cpu(), InputGrad::no);
  EXPECT_EQ(without.forward, 167'772'160);
  EXPECT_EQ(without.backward, 201'326'592) << "2BDD + 4BDK, what a training step runs";
}

TEST(Lecture, TwoLayersOfGpuSizeOnTheNullDevice) {
  const StepFlops with = two_layers(kGpu, Device::null(), InputGrad::yes);
  EXPECT_EQ(with.forward, 43'980'465'111'040) << "4.398047e13";
  EXPECT_EQ(with.backward, 87'960'930'222'080) << "8.796093e13";
  const int64_t parameters = kGpu.D * kGpu.D + kGpu.D * kGpu.K;
  EXPECT_EQ(with.forward + with.backward, 6 * kGpu.B * parameters) << "1.319414e14";
  EXPECT_EQ(two_layers(kGpu, Device::null(), InputGrad::no).backward, 52'776'558'133'248)
      << "5.277656e13";
}

TEST(Lecture, TheNullDeviceCountsWhatTheCpuRuns) {
  for (InputGrad input_grad : {InputGrad::no, InputGrad::yes}) {
    const StepFlops cpu = two_layers(kCpu, Device::cpu(), input_grad),
                    null = two_layers(kCpu, Device::null(), input_grad);
    EXPECT_EQ(cpu.forward, null.forward);
    EXPECT_EQ(cpu.backward, null.backward);
  }
}

// ---- parameters and their start ---------------------------------------------------------------

double std_of(const Tensor& x) { return std::sqrt(var(x).item<double>()); }

TEST(Lecture, OutputsHaveTheRootOfTheInputsAsDeviationUnlessScaled) {
  const Tensor x = normal({64, 16384}, RandomKey{.seed = 1, .stream = 1});
  const Tensor w = normal({16384, 32}, RandomKey{.seed = 1, .stream = 2});
  // 64 * 32 outputs give the deviation to 1 / sqrt(2 * 2048) = 1.6 %.
  EXPECT_NEAR(std_of(matmul(x, w)), 128, 128 * 0.05);
  EXPECT_NEAR(std_of(matmul(x, w / 128.0)), 1, 0.05);
}

TEST(Lecture, AbsoluteBoundsOf3Are384SigmaAndCutNothing) {
  constexpr double kSigma = 1.0 / 128;
  const RandomKey key{.seed = 2, .stream = 1};
  const auto largest = [&](const auto& bounds) {
    return max(abs(truncated_normal({16384, 32}, key, {.std = kSigma, .bounds = bounds})))
               .template item<double>() /
           kSigma;
  };
  EXPECT_DOUBLE_EQ(3 / kSigma, 384);
  EXPECT_GT(largest(AbsoluteBounds{-3, 3}), 4) << "half a million normals reach past 4 sigma";
  EXPECT_LE(largest(SigmaBounds{-3, 3}), 3 * (1 + 1e-6));
}

// The Cruncher: num_layers times [D, D] without bias, then [D, 1].
std::vector<Tensor> cruncher_weights(int64_t D, int64_t num_layers, Device device = Device::cpu()) {
  CategoryScope scope(Category::parameter);
  std::vector<Tensor> weights;
  for (int64_t i = 0; i <= num_layers; ++i) {
    weights.push_back(normal({D, i < num_layers ? D : 1},
                             RandomKey{.seed = 3, .draw = static_cast<uint32_t>(i)},
                             {.std = 1 / std::sqrt(static_cast<double>(D))}, {.device = device}));
    weights.back().require_grad();
  }
  return weights;
}

Tensor crunch(const std::vector<Tensor>& weights, Tensor x) {
  for (const Tensor& w : weights) x = matmul(x, w);
  return squeeze(x, -1);
}

int64_t count_elements(const std::vector<Tensor>& tensors) {
  int64_t count = 0;
  for (const Tensor& x : tensors) count += x.numel();
  return count;
}

TEST(Lecture, TheCruncherHas8256Parameters) {
  const std::vector<Tensor> weights = cruncher_weights(64, 2);
  ASSERT_EQ(weights.size(), 3u);
  EXPECT_EQ(weights[0].numel(), 4096);
  EXPECT_EQ(weights[1].numel(), 4096);
  EXPECT_EQ(weights[2].numel(), 64);
  EXPECT_EQ(count_elements(weights), 8256);
  EXPECT_EQ(crunch(weights, ones({8, 64})).shape(), Shape{8});
  EXPECT_EQ(count_elements(cruncher_weights(64, 3)), 12352);
}

// ---- the memory formula -----------------------------------------------------------------------

TEST(Lecture, AStepOfTheSmallCruncherTakes496BytesAnd432Flops) {
  constexpr int64_t B = 2, D = 4, L = 2;
  for (Device device : {Device::cpu(), Device::null()}) {
    const Ledger& book = ledger(device);
    const auto live = [&](Category category) { return book.live(category); };
    const Bytes before[] = {live(Category::parameter), live(Category::gradient),
                            live(Category::optimizer), live(Category::activation)};
    const std::vector<Tensor> weights = cruncher_weights(D, L, device);
    std::vector<Tensor> squares;
    {
      CategoryScope scope(Category::optimizer);
      for (const Tensor& w : weights) squares.push_back(zeros_like(w));
    }
    Tensor x, y;
    {
      CategoryScope scope(Category::data);
      x = ones({B, D}, {.device = device});
      y = ones({B}, {.device = device});
    }
    x.require_grad();
    CostCounter counter;
    const Tensor hidden = matmul(matmul(x, weights[0]), weights[1]);
    const Bytes activations = live(Category::activation) - before[3];
    mean(square(squeeze(matmul(hidden, weights[2]), -1) - y)).backward();
    x.clear_grad();

    const Bytes parameters = live(Category::parameter) - before[0],
                gradients = live(Category::gradient) - before[1];
    const Bytes state = live(Category::optimizer) - before[2];
    EXPECT_EQ(parameters, Bytes(4 * 36)) << to_text(device);
    EXPECT_EQ(activations, Bytes(4 * B * D * L)) << to_text(device);
    EXPECT_EQ(gradients, Bytes(4 * 36)) << to_text(device);
    EXPECT_EQ(state, Bytes(4 * 36)) << to_text(device);
    EXPECT_EQ(parameters + activations + gradients + state, 496_B) << to_text(device);
    EXPECT_EQ(counter.contractions().flops, 432) << "6 B parameters, the gradient of x counted";
  }
}

}  // namespace
}  // namespace brrr
