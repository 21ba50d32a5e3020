// Micro-batches in low precision on a GPU: steps of several parts learn as steps of one and as on the cpu, the same bits
// twice, with one loss scale and one history a step. The loop is launched, captured and replayed.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "brrr/device/default_device.h"
#include "brrr/ops/binary.h"
#include "brrr/ops/copy.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/matmul.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/repeat.h"
#include "brrr/ops/views.h"
#include "brrr/runtime/compile.h"
#include "brrr/runtime/tensor_core_mark.h"
#include "brrr/train/step.h"
#include "cuda/gpu.h"

namespace brrr {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};
constexpr int kSteps = 20;

struct Mode {
  const char* name;
  PrecisionOptions precision;
  double cut, all;  // how near one part the losses of several are, and how near the cpu
};

// Two roundings meet: sums in another order, and what is rounded the other way for it, by 4 bits of mantissa in e4m3,
// 8 in bf16, 11 in f16.
const Mode kModes[] = {
    {"bf16", {.policy = Precision::bf16_mixed}, 0.01, 0.02},
    {"f16", {.policy = Precision::f16_mixed}, 0.005, 0.01},
    {"f16, attention in f32",
     {.policy = Precision::f16_mixed, .overrides = {{"h.*.attn", Precision::f32}}},
     0.005,
     0.01},
    {"f16, a fixed scale",
     {.policy = Precision::f16_mixed, .loss_scale = {.kind = LossScaling::fixed, .initial = 1024}},
     0.005,
     0.01},
    {"fp8", {.policy = Precision::fp8_mixed}, 0.05, 0.1},
    {"fp8, the head in bf16",
     {.policy = Precision::fp8_mixed, .overrides = {{"head", Precision::bf16_mixed}}},
     0.05,
     0.1}};

// Sizes are multiples of 16, as 8-bit products ask: 8 rows of 32 tokens, in parts of 2 at least.
class Training {
 public:
  Training(const PrecisionOptions& precision, Device device, int64_t parts)
      : device_scope_(device),
        model_(make_model(
            Gpt2Config{.vocab = 64, .context = 32, .layers = 2, .heads = 2, .width = 64}, random_)),
        optimizer_(model_->named_parameters(), AdamWOptions{.weight_decay = 0.1}),
        schedule_({.shape = ScheduleShape::constant, .rate = 3e-3, .steps = 100}),
        step_(*model_, optimizer_, nullptr, schedule_, options_of(precision, device, parts)) {
    constexpr int64_t kBatch = 8, kSeq = 32;
    std::vector<int64_t> tokens, targets;
    for (int64_t i = 0; i < kBatch * kSeq; ++i) {
      tokens.push_back(i * i % 61);
      targets.push_back((i + 1) * (i + 1) % 61);
    }
    batch_.inputs = to(from_values(tokens, {kBatch, kSeq}), device);
    batch_.targets = to(from_values(targets, {kBatch, kSeq}), device);
  }

  StepResult step() { return step_.run(batch_, next_++); }
  std::vector<double> losses(int steps) {
    std::vector<double> found;
    for (int i = 0; i < steps; ++i) found.push_back(step().loss);
    return found;
  }
  Executable& program() { return step_.executable(batch_); }
  std::vector<float> state(std::string_view name) {
    for (const StateSlot& slot : program().graph().states) {
      if (slot.name == name) return to(slot.tensor, Device::cpu()).to_vector<float>();
    }
    ADD_FAILURE() << "there is no state named " << name;
    return {};
  }
  std::vector<float> contents() const {
    std::vector<float> all;
    for (const auto& named : {model_->named_parameters(), optimizer_.states()}) {
      for (const NamedTensor& each : named) {
        const std::vector<float> values =
            to(each.tensor.detach(), Device::cpu()).to_vector<float>();
        all.insert(all.end(), values.begin(), values.end());
      }
    }
    return all;
  }

 private:
  static TrainStepOptions options_of(const PrecisionOptions& precision, Device device,
                                     int64_t parts) {
    TrainStepOptions options{.accumulate = parts};
    options.pipeline.precision = precision;
    options.pipeline.device = device;
    return options;
  }

  DeviceScope device_scope_;
  Random random_{3};
  std::unique_ptr<LanguageModel> model_;
  AdamW optimizer_;
  Schedule schedule_;
  TrainStep step_;
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
  PrecisionOptions precision{.policy = Precision::f16_mixed};
  precision.loss_scale = {.initial = 0x1p40, .growth_interval = 3, .largest = 0x1p40};
  Training training(precision, kGpu, 4);
  const std::vector<float> before = training.contents();
  double scale = 0x1p40;
  int refused = 0;
  for (; refused < 40; ++refused) {
    const StepResult result = training.step();
    EXPECT_TRUE(std::isfinite(result.loss)) << "the forward part is not scaled";
    const double now = training.state("loss_scale")[0];
    if (now >= scale) break;
    EXPECT_EQ(now, scale / 2);
    EXPECT_FALSE(result.applied);
    EXPECT_EQ(training.contents(), before) << "step " << refused;
    scale = now;
  }
  EXPECT_GT(refused, 3) << "launches, capture and replays see an overflow";
  EXPECT_LT(refused, 40);
  EXPECT_NE(training.contents(), before) << "the first step without an overflow counts";
  EXPECT_EQ(training.state("loss_scale.good_steps")[0], 1);
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
  const PrecisionOptions precision{.policy = Precision::fp8_mixed};
  Training cut(precision, kGpu, 4), whole(precision, kGpu, 1);
  constexpr size_t kRuns = 3, kHistory = 16;
  cut.losses(kRuns), whole.losses(kRuns);
  const struct {
    const char* name;
    double largest;
  } formats[] = {{"e4m3", 448}, {"e5m2", 57344}};
  for (const auto& format : formats) {
    const std::string name = join_text("fp8.", format.name);
    const std::vector<float> amax = cut.state(name + ".amax"), scales = cut.state(name + ".scale"),
                             expected = whole.state(name + ".amax");
    ASSERT_EQ(amax.size(), expected.size());
    ASSERT_EQ(amax.size(), scales.size() * kHistory);
    for (size_t i = 0; i < scales.size(); ++i) {
      float largest = 0;
      for (size_t s = 0; s < kHistory; ++s) {
        const float found = amax[i * kHistory + s], wanted = expected[i * kHistory + s];
        EXPECT_EQ(found > 0, s < kRuns) << name << " operand " << i << ", " << s << " steps ago";
        EXPECT_NEAR(found, wanted, 0.15 * wanted) << name << " operand " << i;
        largest = std::max(largest, found);
      }
      EXPECT_FLOAT_EQ(scales[i], static_cast<float>(format.largest / largest)) << name << " " << i;
    }
  }
}

TEST(CudaMicroBatches, ProductsOfBodiesAreEightBits) {
  BRRR_NEEDS_GPU();
  Training training({.policy = Precision::fp8_mixed}, kGpu, 4);
  int products = 0;
  for (const Kernel& kernel : training.program().kernels().kernels) {
    if (!kernel.body) continue;
    for (const Kernel& inner : kernel.body->list.kernels) {
      const auto use = tensor_cores_of(inner, {.major = 9, .minor = 0});
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
  CompiledFunction f(
      [&](std::span<const Tensor> in) -> Tensors {
        const Tensor &x = in[0], &n = in[1];
        const Tensor before = matmul(x[0], w);
        const Tensor first =
            repeat(n, {x}, [&](const Tensor& x_i) { return matmul(x_i * 7.0, v); })[0];
        const Tensor second = repeat(n, {x}, [&](const Tensor& x_i) { return matmul(x_i, u); })[0];
        return {before, first, second, matmul(x[0] * 11.0, w)};
      },
      {.precision = {.policy = Precision::fp8_mixed}, .device = kGpu});
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
  for (const StateSlot& state : f.executable(inputs).graph().states) {
    if (state.name != "fp8.e4m3.amax") continue;
    const std::vector<float> amax = to(state.tensor, Device::cpu()).to_vector<float>();
    std::vector<float> newest;
    for (size_t i = 0; i < amax.size(); i += 16) newest.push_back(amax[i]);
    EXPECT_EQ(newest, (std::vector<float>{1, 2, 7, 3, 1, 5, 11}));
  }
}

}  // namespace
}  // namespace brrr
