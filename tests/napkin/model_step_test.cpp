// Steps on the null device: planned and priced without their memory.
#include "brrr/napkin/model_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/device/default_device.h"
#include "brrr/device/ledger.h"
#include "brrr/nn/families/gpt2.h"
#include "brrr/ops/creation.h"
#include "brrr/runtime/predict.h"
#include "brrr/runtime/stages.h"
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

// The forward products of GPT-2: 24 h^2 FLOPs a token and layer with biases, the head 2 h V, and
// attention over the pairs that a causal mask leaves.
TEST(ModelStep, Gpt2FlopsAreTheFormula) {
  const int64_t batch = 2, seq = 32;
  const Gpt2Config config = gpt2_preset("gpt2-124m");
  const ModelStep step("gpt2-124m", {.batch = batch, .seq = seq, .device = Device::null()});
  const Graph forward = step.trace_forward();
  int64_t flops = 0;
  for (const Node& node : forward.nodes) {
    if (node.op->kind == OpKind::contraction) flops += cost_of(forward, node).flops;
  }
  const int64_t h = config.width, tokens = batch * seq;
  const int64_t linear = tokens * (24 * h * h + 9 * h);
  const int64_t attention = batch * (seq * (seq + 1) / 2) * 4 * h;
  EXPECT_EQ(flops, config.layers * (linear + attention) + tokens * 2 * h * config.vocab);
}

TEST(ModelStep, TheNullDeviceTakesNoMemory) {
  const Bytes before = ledger(Device::cpu()).live();
  const ModelStep step("gpt2-1558m", {.batch = 1, .seq = 64, .device = Device::null()});
  EXPECT_EQ(step.parameter_count(), 1'557'611'200);
  const PlannedProgram program = plan_program(step.trace_step());
  EXPECT_EQ(ledger(Device::cpu()).live(), before);
  int64_t state_bytes = 0;
  for (const Buffer& buffer : program.kernels.buffers)
    state_bytes += buffer.place == Place::state ? buffer.bytes : 0;
  // Parameters and both moments in f32, and the count of steps in f64.
  EXPECT_EQ(state_bytes, 3 * 4 * step.parameter_count() + 8);
  EXPECT_GE(program.plan.arena_bytes, program.plan.lower_bound);
  EXPECT_GT(predict(program.kernels, program.plan, synthetic_rates()).seconds(), 0);
}

// The same program, whichever device it was traced on.
TEST(ModelStep, NullAndCpuGiveTheSamePlan) {
  for (const char* name : {"gpt2-tiny", "mlp"}) {
    ModelStep cpu(name, {.batch = 2, .seq = 16});
    const ModelStep null(name, {.batch = 2, .seq = 16, .device = Device::null()});
    const PlannedProgram program = plan_program(null.trace_step());
    const Executable& real = cpu.executable();
    ASSERT_EQ(program.kernels.kernels.size(), real.kernels().kernels.size());
    EXPECT_EQ(program.plan.arena_bytes, real.plan().arena_bytes);
    for (size_t k = 0; k < program.kernels.kernels.size(); ++k)
      EXPECT_EQ(program.kernels.kernels[k].cost, real.kernels().kernels[k].cost);
  }
}

TEST(ModelStep, SaysWhatItDoesNotKnow) {
  EXPECT_THAT(error_of([] { ModelStep("gpt9", {}); }), HasSubstr("use one of gpt2-tiny"));
  EXPECT_THAT(error_of([] { ModelStep("mlp", {.batch = 0}); }), HasSubstr("is empty"));
}

}  // namespace
}  // namespace brrr
