// 8-bit products of a GPU: every product of a layer has both factors along k, the passes over memory that are saved, and
// that the program still means the same (its ops run on the cpu as what they are composed of).
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "brrr/autodiff/grad.h"
#include "brrr/compiler/fp8/fp8_matmuls.h"
#include "brrr/compiler/pipeline.h"
#include "brrr/compiler/precision/range_loss.h"
#include "brrr/cost/tensor_core_use.h"
#include "brrr/device/default_device.h"
#include "brrr/graph/interpret.h"
#include "brrr/graph/print.h"
#include "brrr/graph/trace.h"
#include "brrr/graph/verify.h"
#include "brrr/nn/families/gpt2.h"
#include "brrr/ops/control/repeat.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/fp8.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/runtime/stages.h"
#include "support/h200.h"
#include "support/plain_step.h"

namespace brrr {
namespace {

std::map<std::string, int> op_counts(const graph::Graph& graph) {
  std::map<std::string, int> counts;
  for (const graph::Node& node : graph.nodes) ++counts[std::string(node.op->name)];
  return counts;
}

training::StepSpec tiny_step(int64_t seq, compiler::RematPolicy recompute) {
  compiler::PipelineOptions pipeline;
  pipeline.device = Device::null(), pipeline.target = h200();
  pipeline.precision.policy = compiler::Precision::fp8_mixed;
  pipeline.remat.policy = recompute;
  return plain_step("gpt2-tiny", {.batch = 2, .seq = seq, .layers = 2, .vocab = 64}, pipeline);
}

constexpr compiler::RematPolicy kPolicies[] = {
    compiler::RematPolicy::none, compiler::RematPolicy::selective, compiler::RematPolicy::full};

TEST(Fp8Products, EveryProductOfTrainingLiesAlongK) {
  for (const compiler::RematPolicy recompute : kPolicies) {
    const runtime::PlannedProgram plan = training::plan_step(tiny_step(32, recompute));
    int products = 0, scaled = 0, backward = 0;
    for (const compiler::Kernel& kernel : plan.kernels.kernels) {
      const std::optional<kernels::TensorCoreUse> use =
          cost::tensor_cores_of(kernel, {.major = 9, .minor = 0});
      if (!use || kernel.op == &attention_op || kernel.op == &attention_backward_op) continue;
      ++products;
      scaled += kernel.op == &matmul_scaled_op ? 1 : 0;
      EXPECT_EQ(use->mark(), "fp8") << kernel.name << ": " << use->reason;
      if (kernel.phase != graph::Phase::backward) continue;
      ++backward;  // dY is one of the factors
      EXPECT_TRUE(kernel.inputs[0].dtype == DType::f8e5m2 ||
                  kernel.inputs[1].dtype == DType::f8e5m2);
    }
    EXPECT_GE(products, 3 * (4 * 2 + 1));  // what is recomputed comes on top
    EXPECT_EQ(backward, 2 * (4 * 2 + 1));
    EXPECT_EQ(scaled, products);
  }
}

// As in a step without them; what is added up leaves the product as f32.
TEST(Fp8Products, ProductsOfMicroBatchesDoToo) {
  const DeviceScope scope(Device::null());
  Random random(3);
  Gpt2 model({.vocab = 64, .context = 32, .layers = 2, .heads = 2, .width = 64}, random);
  graph::Tracer tracer;
  const TensorType ids{.shape = {4, 2, 32}, .dtype = DType::i64};
  const Tensor count = tracer.add_input({{}, DType::i64}, Device::null(), "count"),
               tokens = tracer.add_input(ids, Device::null(), "tokens"),
               targets = tracer.add_input(ids, Device::null(), "targets");
  const std::vector<Tensor> sums = repeat(
      count, {tokens, targets},
      [&](const Tensor& x, const Tensor& y) { return grad(model.loss(x, y), model.parameters()); });
  compiler::PipelineOptions options;
  options.device = Device::null(), options.target = h200();
  options.precision.policy = compiler::Precision::fp8_mixed;
  const runtime::PlannedProgram plan = runtime::plan_program(tracer.finish(sums), options);
  int products = 0;
  for (const compiler::Kernel& kernel : plan.kernels.kernels) {
    if (!kernel.body) continue;
    for (const compiler::Kernel& inner : kernel.body->list.kernels) {
      const std::optional<kernels::TensorCoreUse> use =
          cost::tensor_cores_of(inner, {.major = 9, .minor = 0});
      if (!use || inner.op == &attention_op || inner.op == &attention_backward_op) continue;
      ++products;
      EXPECT_EQ(use->mark(), "fp8") << inner.name << ": " << use->reason;
      EXPECT_EQ(inner.op, &matmul_scaled_op) << inner.name;
    }
    auto counts = op_counts(*kernel.body_graph);
    EXPECT_EQ(counts["abs"], 0) << "an operand is read for its largest magnitude alone";
  }
  EXPECT_EQ(products, 3 * (4 * 2 + 1));
}

// Largest magnitudes come with the values: nobody reads an operand for them alone, and products are not scaled by
// kernels of their own.
TEST(Fp8Products, OneReadAnOperand) {
  for (const compiler::RematPolicy recompute : kPolicies) {
    const training::StepSpec spec = tiny_step(32, recompute);
    const runtime::PlannedProgram plan = training::plan_step(spec);
    auto counts = op_counts(plan.graph());
    EXPECT_EQ(counts["abs"], 0);
    EXPECT_EQ(counts["matmul"] + counts["linear"], 0);
    int amax = 0;
    for (const graph::Node& node : plan.graph().nodes) {
      if (node.op == &quantize_op && node.attrs.flag("amax")) ++amax;
    }
    EXPECT_EQ(amax, 3 * (4 * 2 + 1));  // x, w and dy of every product

    training::StepSpec bare = spec;
    bare.pipeline = compiler::without(bare.pipeline, "fp8_products");
    const runtime::PlannedProgram before = training::plan_step(bare);
    Cost with_cost, without_cost;
    for (const compiler::Kernel& kernel : plan.kernels.kernels) with_cost += kernel.cost;
    for (const compiler::Kernel& kernel : before.kernels.kernels) without_cost += kernel.cost;
    EXPECT_LT(with_cost.bytes_read + with_cost.bytes_written,
              without_cost.bytes_read + without_cost.bytes_written);
    EXPECT_LT(plan.kernels.kernels.size(), before.kernels.kernels.size());
  }
}

double relative_error(const Tensor& got, const Tensor& expected) {
  const Tensor a = cast(got, DType::f64), b = cast(expected, DType::f64);
  return std::sqrt(sum(square(a - b)).item<double>() /
                   std::max(1e-30, sum(square(b)).item<double>()));
}

// First moments of AdamW are gradients times a number. What differs is the order of f32 sums, and what is rounded the
// other way for it.
TEST(Fp8Products, Gpt2HasTheSameGradientsAndScales) {
  for (const compiler::RematPolicy recompute : kPolicies) {
    const training::StepSpec spec = tiny_step(32, recompute);
    const HostStep step(spec);
    const runtime::PlannedProgram plan = runtime::plan_program(step.trace(), spec.pipeline);
    ASSERT_NE(plan.find("add_epilogue"), nullptr);
    const graph::Interpreted expected = graph::interpret(*plan.find("add_epilogue"), step.inputs),
                             got = graph::interpret(plan.graph(), step.inputs);
    EXPECT_LT(relative_error(got.outputs[0], expected.outputs[0]), 1e-4);
    int gradients = 0, scales = 0;
    for (size_t i = 0; i < got.states.size(); ++i) {
      const std::string& name = plan.graph().states[i].name;
      if (name.starts_with("first.")) {
        ++gradients;
        EXPECT_LT(relative_error(got.states[i], expected.states[i]), 3e-2) << name;
      } else if (name.starts_with("fp8.")) {
        ++scales;
        EXPECT_LT(relative_error(got.states[i], expected.states[i]), 1e-2) << name;
      }
    }
    EXPECT_EQ(gradients, 2 + 12 * 2 + 2);
    EXPECT_EQ(scales, 4);
  }
}

// Numbers that leave the range of 8 bits are counted as they are without the pass.
TEST(Fp8Products, RangeLossesAreCounted) {
  const training::StepSpec spec = tiny_step(32, compiler::RematPolicy::none);
  const HostStep step(spec);
  const runtime::PlannedProgram plan = runtime::plan_program(step.trace(), spec.pipeline);
  const compiler::RangeLoss
      expected = compiler::count_range_losses(*plan.find("add_epilogue"), step.inputs).all(),
      got = compiler::count_range_losses(plan.graph(), step.inputs).all();
  EXPECT_GT(expected.underflows, 1000) << "scales are 1 in the first step";
  EXPECT_NEAR(static_cast<double>(got.underflows), static_cast<double>(expected.underflows),
              0.01 * static_cast<double>(expected.underflows));
  EXPECT_EQ(got.overflows, expected.overflows);
  EXPECT_GT(got.stored, 10'000);
}

// 17 rows a sequence: no multiple of 16 along k of dW, nor along m of dX.
TEST(Fp8Products, LeaveOtherSizesAlone) {
  const runtime::PlannedProgram plan =
      training::plan_step(tiny_step(17, compiler::RematPolicy::none));
  auto counts = op_counts(plan.graph());
  EXPECT_EQ(counts["quantize"] + counts["matmul_scaled"], 0);
  EXPECT_EQ(graph::to_text(plan.graph()), graph::to_text(*plan.find("add_epilogue")));
}

// The first factor is read as it lies and transposed, the bias is the library's, and the result is rounded once.
TEST(Fp8Products, Golden) {
  const graph::Graph before = graph::parse_graph(R"(input %0: bf16[32, 16] "x"
input %1: f8e4m3[16, 48] "other"
state %2: f32[48, 16] "w"
state %3: bf16[48] "b"
state %4: f32[2] "scales"
%5: bf16[32, 16] = abs %0
%6: bf16[] = max %5 {axes=[0, 1] keep_dims=false}
%7: f32[] = cast %6 {dtype=f32}
%8: f32[] = select %4 {axis=0 index=0}
%9: f32[32, 16] = cast %0 {dtype=f32}
%10: f32[32, 16] = mul %9 %8
%11: f8e4m3[32, 16] = cast %10 {dtype=f8e4m3}
%12: f32[] = select %4 {axis=0 index=1}
%13: f32[48, 16] = mul %2 %12
%14: f8e4m3[48, 16] = cast %13 {dtype=f8e4m3}
%15: f32[32, 48] = linear %11 %14 {dtype=f32}
%16: f32[] = mul %8 %12
%17: f32[32, 48] = mul %15 %16
%18: f32[32, 48] = add %17 %3
%19: bf16[32, 48] = cast %18 {dtype=bf16}
%20: f8e4m3[16, 32] = transpose %11 {a=0 b=1}
%21: f32[16, 16] = matmul %20 %11 {dtype=f32}
return %7 %19 %21
)");
  const graph::Graph after = compiler::take_fp8_products(before);
  graph::verify(after, "fp8_products");
  EXPECT_EQ(graph::to_text(after), R"(input %0: bf16[32, 16] "x"
input %1: f8e4m3[16, 48] "other"
state %2: f32[48, 16] "w"
state %3: bf16[48] "b"
state %4: f32[2] "scales"
%5: f32[] = select %4 {axis=0 index=0}
%6: f8e4m3[32, 16], %7: f8e4m3[16, 32], %8: f32[] = quantize %0 %5 {dtype=f8e4m3 columns=16 plain=true turned=true amax=true}
%9: f8e4m3[32, 16] = transpose %7 {a=0 b=1}
%10: f32[] = select %4 {axis=0 index=1}
%11: f8e4m3[48, 16] = quantize %2 %10 {dtype=f8e4m3 columns=16 plain=true turned=false amax=false}
%12: f8e4m3[16, 48] = transpose %11 {a=0 b=1}
%13: bf16[32, 48] = matmul_scaled %6 %12 %5 %10 %3 {dtype=bf16}
%14: f8e4m3[16, 32] = transpose %9 {a=0 b=1}
%15: f32[16, 16] = matmul %14 %9 {dtype=f32}
return %8 %13 %15
)");
}

}  // namespace
}  // namespace brrr
