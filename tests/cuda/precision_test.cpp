// Training in low precision on a GPU: finite and falling losses, near those of the same policy on the cpu, the same
// bits twice; scales that move on the device, and an overflow that changes nothing there.
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/autodiff/grad.h"
#include "brrr/compiler/range_loss.h"
#include "brrr/device/default_device.h"
#include "brrr/nn/gpt2.h"
#include "brrr/ops/copy.h"
#include "brrr/ops/creation.h"
#include "brrr/optim/optimizer.h"
#include "brrr/runtime/compile.h"
#include "cuda/gpu.h"

namespace brrr {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};

struct Mode {
  const char* name;
  PrecisionOptions precision;
  DType parameters = DType::f32;
  double first, all;  // how near the cpu the loss of the first step is, and that of every step
};

// What differs is the order of sums, and what follows from a number that is rounded the other way: by 4 bits of
// mantissa in e4m3, 8 in bf16, 11 in f16.
const Mode kModes[] = {{"tf32", {.matmul = MatmulPrecision::tf32}, DType::f32, 1e-4, 0.005},
                       {"bf16 mixed", {.policy = Precision::bf16_mixed}, DType::f32, 1e-3, 0.02},
                       {"bf16 pure", {}, DType::bf16, 4e-3, 0.03},
                       {"f16", {.policy = Precision::f16_mixed}, DType::f32, 2e-4, 0.01},
                       {"f16 unscaled",
                        {.policy = Precision::f16_mixed, .loss_scale = {.kind = LossScaling::none}},
                        DType::f32,
                        2e-4,
                        0.01},
                       {"fp8", {.policy = Precision::fp8_mixed}, DType::f32, 5e-3, 0.1}};

// Two layers of width 64: heads of 32 go to tensor cores, and all sizes are multiples of 16, as 8-bit products ask.
// The vocabulary of 64 keeps the head among them.
class Training {
 public:
  Training(const Mode& mode, Device device)
      : device_scope_(device),
        parameter_scope_({.dtype = mode.parameters}),
        model_({.vocab = 64, .context = 32, .layers = 2, .heads = 2, .width = 64}, random_),
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
    std::vector<int64_t> tokens, targets;
    for (int64_t i = 0; i < kBatch * kSeq; ++i) {
      tokens.push_back(i * i % 61);
      targets.push_back((i + 1) * (i + 1) % 61);
    }
    for (const std::vector<int64_t>& ids : {tokens, targets})
      inputs_.push_back(to(from_values(ids, {kBatch, kSeq}), device));
    EXPECT_EQ(to_text(inputs_[0].device()), to_text(device));
  }

  double step() { return program().run(inputs_)[0].item<double>(); }
  std::vector<double> losses(int steps) {
    std::vector<double> found;
    for (int i = 0; i < steps; ++i) found.push_back(step());
    return found;
  }
  Executable& program() { return function_.executable(inputs_); }
  std::span<const Tensor> inputs() const { return inputs_; }

  std::vector<float> state(std::string_view name) {
    for (const StateSlot& slot : program().graph().states) {
      if (slot.name == name) return to(slot.tensor, Device::cpu()).to_vector<float>();
    }
    ADD_FAILURE() << "there is no state named " << name;
    return {};
  }
  std::vector<float> parameters() {
    std::vector<float> all;
    for (const NamedTensor& p : model_.named_parameters()) {
      const std::vector<float> values = to(p.tensor.detach(), Device::cpu()).to_vector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  static constexpr int64_t kBatch = 2, kSeq = 32;
  DeviceScope device_scope_;
  ParameterScope parameter_scope_;
  Random random_{3};
  Gpt2 model_;
  AdamW optimizer_;
  CompiledFunction function_;
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
    const std::vector<float> parameters = first.parameters();
    Training second(mode, kGpu);
    EXPECT_EQ(second.losses(kSteps), losses) << mode.name;
    EXPECT_EQ(second.parameters(), parameters) << mode.name;
  }
}

TEST(CudaPrecision, AnOverflowChangesNothingButTheScale) {
  BRRR_NEEDS_GPU();
  Mode mode{"f16", {.policy = Precision::f16_mixed}, DType::f32, 0, 0};
  mode.precision.loss_scale = {.initial = 0x1p40, .growth_interval = 3, .largest = 0x1p40};
  Training training(mode, kGpu);
  const std::vector<float> before = training.parameters();
  double scale = 0x1p40;
  int refused = 0;
  for (; refused < 40; ++refused) {
    EXPECT_TRUE(std::isfinite(training.step())) << "the forward part is not scaled";
    const double now = training.state("loss_scale")[0];
    if (now >= scale) break;
    EXPECT_EQ(now, scale / 2);
    EXPECT_EQ(training.parameters(), before) << "step " << refused;
    scale = now;
  }
  EXPECT_GT(refused, 2)
      << "2^40 times any gradient is beyond f16; three runs see launches, capture and replay";
  EXPECT_LT(refused, 40);
  EXPECT_NE(training.parameters(), before) << "the first step without an overflow counts";
  EXPECT_EQ(training.state("loss_scale.good_steps")[0], 1);
  for (int i = 0; i < 2; ++i) training.step();
  EXPECT_EQ(training.state("loss_scale")[0], 2 * scale) << "three good steps double it";
}

TEST(CudaPrecision, ScalesOfEightBitsFollowTheirOperands) {
  BRRR_NEEDS_GPU();
  const Mode mode{"fp8", {.policy = Precision::fp8_mixed}, DType::f32, 0, 0};
  const auto amax_on_cpu = [&](const std::string& name) {
    Training training(mode, Device::cpu());
    training.losses(3);
    return training.state(name);
  };
  const struct {
    const char* name;
    double largest;
  } formats[] = {{"e4m3", 448}, {"e5m2", 57344}};
  for (const auto& format : formats) {
    const std::string name = join_text("fp8.", format.name);
    const std::vector<float> expected = amax_on_cpu(name + ".amax");
    Training gpu(mode, kGpu);
    gpu.losses(3);
    const std::vector<float> amax = gpu.state(name + ".amax"), scales = gpu.state(name + ".scale");
    ASSERT_EQ(amax.size(), scales.size() * 16);
    ASSERT_EQ(amax.size(), expected.size());
    for (size_t i = 0; i < scales.size(); ++i) {
      float largest = 0;
      for (size_t s = 0; s < 16; ++s) {
        EXPECT_EQ(amax[i * 16 + s] > 0, s < 3)
            << name << " operand " << i << ", " << s << " steps ago";
        EXPECT_NEAR(amax[i * 16 + s], expected[i * 16 + s], 0.15 * expected[i * 16 + s]);
        largest = std::max(largest, amax[i * 16 + s]);
      }
      EXPECT_FLOAT_EQ(scales[i], static_cast<float>(format.largest / largest)) << name << " " << i;
    }
  }
}

// What the interpreter counts on the device is what it counts on the cpu, roundings of sums apart.
TEST(CudaPrecision, CountsRangeLossesThere) {
  BRRR_NEEDS_GPU();
  const Mode mode{"f16 unscaled",
                  {.policy = Precision::f16_mixed, .loss_scale = {.kind = LossScaling::none}},
                  DType::f32,
                  0,
                  0};
  Training training(mode, kGpu);
  const std::vector<float> before = training.parameters();
  const RangeLosses lost = count_range_losses(training.program().graph(), training.inputs());
  EXPECT_GT(lost.forward.stored, 10'000);
  EXPECT_GT(lost.backward.stored, 10'000);
  EXPECT_GT(lost.backward.underflows, 0) << "f16 loses small gradients";
  EXPECT_EQ(lost.all().overflows, 0);
  EXPECT_EQ(training.parameters(), before) << "nothing is written";
}

}  // namespace
}  // namespace brrr
