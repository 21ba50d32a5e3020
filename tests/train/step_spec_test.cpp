// Steps by specification: planned and priced without their memory, and the same as `brrr train` has.
#include "brrr/train/step_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/cost/predict.h"
#include "brrr/device/default_device.h"
#include "brrr/device/ledger.h"
#include "brrr/graph/print.h"
#include "brrr/nn/families/gpt2.h"
#include "brrr/ops/create/creation.h"
#include "brrr/runtime/stages.h"
#include "brrr/train/auto_size.h"
#include "brrr/train/setup.h"
#include "support/error_of.h"
#include "support/synthetic_rates.h"

namespace brrr {
namespace {

using testing::HasSubstr;

TEST(DeviceScope, NamesTheDeviceOfNewTensors) {
  {
    const DeviceScope scope(Device::null());
    EXPECT_EQ(zeros({2}).device(), Device::null());
    {
      const DeviceScope inner(Device::cpu());
      EXPECT_EQ(zeros({2}).device(), Device::cpu());
    }
    EXPECT_EQ(zeros({2}).device(), Device::null());
    EXPECT_EQ(zeros({2}, {.device = Device::cpu()}).device(), Device::cpu());
  }
  EXPECT_EQ(zeros({2}).device(), Device::cpu());
}

// The forward matmuls of GPT-2: 24 h^2 FLOPs a token and layer with biases, the head 2 h V, and
// attention over the pairs that a causal mask leaves.
TEST(StepSpec, Gpt2FlopsAreTheFormula) {
  const int64_t batch = 2, seq = 32;
  const Gpt2Config config = gpt2_preset("gpt2-124m");
  const training::StepSpec spec =
      training::on_paper(training::named_step("gpt2-124m", {.batch = batch, .seq = seq}));
  const graph::Graph forward =
      training::make_parts(spec).step->trace_forward(training::make_batch(spec));
  int64_t flops = 0;
  for (const graph::Node& node : forward.nodes) {
    if (node.op->kind == OpKind::contraction) flops += graph::cost_of(forward, node).flops;
  }
  const int64_t h = config.width, tokens = batch * seq;
  const int64_t linear = tokens * (24 * h * h + 9 * h);
  const int64_t attention = batch * (seq * (seq + 1) / 2) * 4 * h;
  EXPECT_EQ(flops, config.layers * (linear + attention) + tokens * 2 * h * config.vocab);
}

TEST(StepSpec, OnPaperItTakesNoMemory) {
  const Bytes before = ledger(Device::cpu()).live();
  const training::StepSpec spec =
      training::on_paper(training::named_step("gpt2-1558m", {.batch = 1, .seq = 64}));
  const training::TrainingParts parts = training::make_parts(spec);
  EXPECT_EQ(parts.trained().parameter_count(), 1'557'611'200);
  const runtime::PlannedProgram program = training::plan_step(spec);
  EXPECT_EQ(ledger(Device::cpu()).live(), before);
  int64_t state_bytes = 0;
  for (const compiler::Buffer& buffer : program.kernels.buffers)
    state_bytes += buffer.place == compiler::Place::state ? buffer.bytes : 0;
  // Parameters and both moments in f32, and the count of steps in f64.
  EXPECT_EQ(state_bytes, 3 * 4 * parts.trained().parameter_count() + 8);
  EXPECT_GE(program.plan.arena_bytes, program.plan.lower_bound);
  EXPECT_GT(cost::predict(program.kernels, program.plan, synthetic_rates()).seconds(), 0);
}

void expect_same_kernels(const compiler::KernelList& planned, const compiler::KernelList& real) {
  ASSERT_EQ(planned.kernels.size(), real.kernels.size());
  for (size_t k = 0; k < planned.kernels.size(); ++k) {
    EXPECT_EQ(planned.kernels[k].name, real.kernels[k].name);
    EXPECT_EQ(planned.kernels[k].cost, real.kernels[k].cost) << real.kernels[k].name;
  }
}

// The same program on paper and on the host, with and without micro-batches.
TEST(StepSpec, PaperAndHostHaveTheSameProgram) {
  for (const char* name : {"gpt2-tiny", "mlp", "cnn"}) {
    for (const int64_t accumulate : {1, 2}) {
      training::StepSpec spec = training::named_step(name, {.batch = 2, .seq = 16});
      spec.accumulate = accumulate;
      const training::TrainingParts parts = training::make_parts(spec);
      const runtime::Executable& real = parts.step->executable(training::make_batch(spec));
      const runtime::PlannedProgram planned = training::plan_step(training::on_paper(spec));
      expect_same_kernels(planned.kernels, real.kernels());
      EXPECT_EQ(planned.plan.arena_bytes, real.plan().arena_bytes) << name;
    }
  }
}

// What `brrr explain`, `profile` and `napkin` are about is the program of a run: settings that a run chooses from its
// data are numbers in it.
TEST(StepSpec, DefaultsAreThoseOfARun) {
  runs::TrainConfig config;
  config.model.preset = "gpt2-tiny";
  config.model.context = 32;
  config.train.batch = 4;
  for (const int64_t accumulate : {1, 3}) {
    config.train.accumulate = accumulate;
    const training::ResolvedRun run =
        training::resolve_sizes(config, {.train_tokens = 100'000, .vocab = 96, .documents = 1}, {});
    training::StepSpec spec =
        training::named_step("gpt2-tiny", {.batch = 4, .seq = 32, .vocab = 96});
    std::get<ModelConfig>(spec.model).set("context", int64_t{32});
    spec.accumulate = accumulate;
    const training::StepSpec of_run =
        training::step_spec(run.config, run.model, compiler::cpu_target());
    EXPECT_EQ(of_run.optimizer, spec.optimizer);
    expect_same_kernels(training::plan_step(training::on_paper(spec)).kernels,
                        training::plan_step(training::on_paper(of_run)).kernels);
  }
}

TEST(StepSpec, MicroBatchesAreRowsOfTheBatch) {
  for (const char* name : {"gpt2-tiny", "mlp"}) {
    training::StepSpec spec = training::named_step(name, {.batch = 4, .seq = 16});
    training::StepSpec parted = spec;
    parted.batch = 2, parted.accumulate = 2;
    const auto loss = [](const training::StepSpec& s) {
      const training::TrainingParts parts = training::make_parts(s);
      return parts.step->run(training::make_batch(s), 0).loss;
    };
    EXPECT_NEAR(loss(parted), loss(spec), 1e-5 * loss(spec)) << name << ": f32 sums in two parts";
  }
}

TEST(StepSpec, EagerStepsHaveTheLossOfCompiledOnes) {
  const training::StepSpec spec = training::named_step("cnn", {.batch = 2});
  const double eager =
      training::make_parts(spec).step->run_eager(training::make_batch(spec))[0].item<double>();
  EXPECT_EQ(training::make_parts(spec).step->run(training::make_batch(spec), 0).loss, eager);
}

TEST(StepSpec, SaysWhatItDoesNotKnow) {
  EXPECT_THAT(error_of([] { training::named_step("gpt9"); }), HasSubstr("use one of gpt2-tiny"));
  EXPECT_EQ(error_of([] { training::named_step("mlp", {.batch = 0}); }),
            "a batch of 0 x 64 is empty; use at least 1");
  EXPECT_EQ(error_of([] { training::named_step("cnn", {.width = 8}); }),
            "cnn has no width to change");
}

}  // namespace
}  // namespace brrr
