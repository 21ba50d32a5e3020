// Prices by hand: FLOPs, bytes, distances, regimes and what-ifs with rates of round numbers.
#include "brrr/cost/predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/cost/kernel_family.h"
#include "brrr/cost/traffic.h"
#include "brrr/graph/print.h"
#include "brrr/graph/trace.h"
#include "brrr/ops/attention/attention.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/norm/layer_norm.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/stages.h"
#include "support/error_of.h"
#include "support/plain_step.h"
#include "support/synthetic_rates.h"

namespace brrr {
namespace {

using testing::HasSubstr;

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

// A program over inputs of these shapes, on the null device.
runtime::PlannedProgram planned(const std::vector<Shape>& shapes, const Function& function,
                                const compiler::PipelineOptions& options = {}) {
  graph::Tracer tracer;
  std::vector<Tensor> inputs;
  for (const Shape& shape : shapes)
    inputs.push_back(tracer.add_input({.shape = shape}, Device::null(), "x"));
  const Tensor result = function(inputs);
  return runtime::plan_program(tracer.finish({&result, 1}), options);
}

cost::Prediction priced(const runtime::PlannedProgram& program, const cost::WhatIf& what_if = {}) {
  return cost::predict(program.kernels, program.plan, synthetic_rates(), what_if);
}

const Function kNeg = [](const std::vector<Tensor>& x) { return neg(x[0]); };
const Function kMatmul = [](const std::vector<Tensor>& x) { return matmul(x[0], x[1]); };

TEST(Predict, CountsFlopsByTheFormulas) {
  const auto flops = [](const std::vector<Shape>& shapes, const Function& function) {
    int64_t total = 0;
    for (const compiler::Kernel& kernel : planned(shapes, function).kernels.kernels)
      total += kernel.cost.flops;
    return total;
  };
  EXPECT_EQ(flops({{3, 4}, {4, 5}}, kMatmul), 2 * 3 * 4 * 5);
  EXPECT_EQ(flops({{2, 7, 4}, {5, 4}, {5}}, [](const auto& x) { return linear(x[0], x[1], x[2]); }),
            2 * 7 * 5 * (2 * 4 + 1));
  // Causal: query i sees i + 1 keys; two products of 16 multiply-adds a pair.
  EXPECT_EQ(flops({{2, 3, 10, 16}},
                  [](const auto& x) { return attention(x[0], x[0], x[0], {.causal = true}); }),
            2 * 3 * (10 * 11 / 2) * 2 * 2 * 16);
  EXPECT_EQ(flops({{6, 8}}, kNeg), 6 * 8);
}

// y = -x over n floats: 1 us for the call, n ns of arithmetic, 8 n bytes.
TEST(Predict, RegimesCrossWhereTheTermsDo) {
  const auto at = [](int64_t n) { return priced(planned({{n}}, kNeg)).kernels[0]; };
  const cost::KernelPrediction tiny = at(100), middle = at(10'000), large = at(10'000'000);
  EXPECT_DOUBLE_EQ(tiny.overhead, 1e-6);
  EXPECT_DOUBLE_EQ(tiny.compute, 100e-9);
  EXPECT_EQ(tiny.regime(), cost::Regime::overhead);
  EXPECT_DOUBLE_EQ(middle.memory, 8e4 / 100e9) << "from the caches";
  EXPECT_EQ(middle.regime(), cost::Regime::compute);
  EXPECT_DOUBLE_EQ(large.memory, 8e7 / 10e9) << "from memory";
  EXPECT_EQ(large.regime(), cost::Regime::compute) << "10 ms of arithmetic against 8 ms of bytes";
  EXPECT_DOUBLE_EQ(large.seconds(), 1e-6 + 10e-3);
  EXPECT_EQ(priced(planned({{10'000'000}}, kNeg), {.flops = 2}).kernels[0].regime(),
            cost::Regime::bandwidth);
}

TEST(Predict, MatmulsHaveTheirOwnRate) {
  const cost::Prediction square = priced(planned({{1000, 1000}, {1000, 1000}}, kMatmul));
  EXPECT_DOUBLE_EQ(square.kernels[0].compute, 2e9 / 100e9);
  EXPECT_EQ(square.kernels[0].family, "matmul.nn");
  EXPECT_EQ(square.kernels[0].regime(), cost::Regime::compute);
  // One row: every weight is read for two FLOPs.
  const cost::Prediction row = priced(planned({{1, 4000}, {4000, 4000}}, kMatmul));
  EXPECT_EQ(row.kernels[0].regime(), cost::Regime::bandwidth);
}

// Where operands are packed first, reading them takes its time before the arithmetic begins.
TEST(Predict, PackedProductsAddTheirBytes) {
  const runtime::PlannedProgram program = planned({{8, 4000}, {4000, 4000}}, kMatmul);
  hardware::Rates rates = synthetic_rates();
  rates.packs_operands = true;
  const cost::KernelPrediction hidden = priced(program).kernels[0],
                               packed =
                                   cost::predict(program.kernels, program.plan, rates).kernels[0];
  EXPECT_DOUBLE_EQ(hidden.seconds(), 1e-6 + std::max(hidden.compute, hidden.memory));
  EXPECT_DOUBLE_EQ(packed.seconds(), 1e-6 + hidden.compute + hidden.memory);
}

TEST(KernelFamily, SeesHowOperandsLie) {
  const auto family = [](const std::vector<Shape>& shapes, const Function& function) {
    return cost::work_of(planned(shapes, function).kernels.kernels.back()).parts.back();
  };
  EXPECT_EQ(
      family({{8, 8}, {8, 8}}, [](const auto& x) { return matmul(x[0], transpose(x[1])); }).family,
      "matmul.nt");
  EXPECT_EQ(
      family({{8, 8}, {8, 8}}, [](const auto& x) { return matmul(transpose(x[0]), x[1]); }).family,
      "matmul.tn");
  EXPECT_EQ(family({{8, 6}, {5, 6}}, [](const auto& x) { return linear(x[0], x[1]); }).family,
            "matmul.nt");
  const cost::FamilyWork product = family({{8, 6}, {6, 5}}, kMatmul);
  EXPECT_EQ(product.where[0], 8);
  EXPECT_EQ(product.where[1], 5);
  EXPECT_EQ(product.where[2], 6);
  EXPECT_EQ(family({{8, 6}}, [](const auto& x) { return sum(x[0], {0}); }).family, "sum.column");
  EXPECT_EQ(family({{8, 6}}, [](const auto& x) { return sum(x[0], {1}); }).family, "sum.row");
  EXPECT_EQ(family({{8, 6}}, [](const auto& x) { return contiguous(transpose(x[0])); }).family,
            "copy.strided");
}

// As behind a convolution, whose product of channels and places goes on as an image.
TEST(KernelFamily, AProductIsAsLargeAsItselfWhateverIsFusedBehindIt) {
  const runtime::PlannedProgram program = planned({{3, 8, 6}, {3, 6, 20}}, [](const auto& x) {
    return relu(reshape(matmul(x[0], x[1]), {3, 8, 4, 5}));
  });
  ASSERT_EQ(program.kernels.kernels.size(), 1U);
  const std::vector<cost::FamilyWork> parts = cost::work_of(program.kernels.kernels[0]).parts;
  const auto product = std::find_if(parts.begin(), parts.end(), [](const cost::FamilyWork& work) {
    return work.family == "matmul.nn";
  });
  ASSERT_NE(product, parts.end());
  EXPECT_EQ(product->where[0], 8);
  EXPECT_EQ(product->where[1], 20);
  EXPECT_NEAR(product->where[2], 6, 0.5) << "from the FLOPs, with those of relu";
}

TEST(KernelFamily, FusedChainsAreTheSumOfTheirPrimitives) {
  const runtime::PlannedProgram program =
      planned({{4096}, {4096}}, [](const auto& x) { return exp(x[0]) * x[1] + x[0]; });
  ASSERT_EQ(program.kernels.kernels.size(), 1U);
  const cost::KernelWork work = cost::work_of(program.kernels.kernels[0]);
  ASSERT_EQ(work.parts.size(), 3U);
  EXPECT_EQ(work.parts[0].family, "tile.exp");
  EXPECT_EQ(work.parts[2].family, "tile.add");
  EXPECT_DOUBLE_EQ(priced(program).kernels[0].compute, 3 * 4096 / 1e9);
  EXPECT_EQ(cost::class_of(program.kernels.kernels[0]), cost::KernelClass::elementwise);
}

// As updates of parameters of many shapes are: no operand is spread over the shape of another.
TEST(KernelFamily, ProgramsOfAGroupHaveShapesOfTheirOwn) {
  const runtime::PlannedProgram program =
      training::plan_step(plain_step("gpt2-tiny", {.batch = 1, .seq = 8}));
  size_t largest = 0;
  for (const compiler::Kernel& kernel : program.kernels.kernels) {
    if (kernel.op || kernel.attachments.empty()) continue;
    largest = std::max(largest, kernel.attachments.size());
    for (const cost::FamilyWork& work : cost::work_of(kernel).parts)
      EXPECT_NE(work.family, "tile.spread") << kernel.name;
  }
  EXPECT_GT(largest, 8U);
}

// Micro-batches are a loop: it takes as long as all runs of its body.
TEST(Predict, ALoopTakesAllRunsOfItsBody) {
  training::StepSpec spec = plain_step("gpt2-tiny", {.batch = 2, .seq = 16});
  spec.accumulate = 4;
  const runtime::PlannedProgram program = training::plan_step(spec);
  const hardware::Rates rates = synthetic_rates();
  const cost::Prediction prediction = cost::predict(program.kernels, program.plan, rates);
  int loops = 0;
  for (size_t k = 0; k < program.kernels.kernels.size(); ++k) {
    const compiler::Kernel& kernel = program.kernels.kernels[k];
    if (!kernel.body) continue;
    ++loops;
    const double once = cost::predict(kernel.body->list, kernel.body->plan, rates).seconds();
    EXPECT_NEAR(prediction.kernels[k].seconds(), 4 * once, 1e-12 * once);
    EXPECT_GT(once, 0);
  }
  EXPECT_EQ(loops, 1);
}

// The second kernel reads what the first has just written; the input was last used a step ago.
TEST(Traffic, DistanceIsWhatWasTouchedSince) {
  constexpr int64_t kBytes = 4 * 1000;
  const runtime::PlannedProgram program =
      planned({{1000}}, [](const auto& x) { return neg(exp(x[0])); }, {.without = {"fuse"}});
  const auto traffic = cost::trace_traffic(program.kernels, program.plan);
  ASSERT_EQ(traffic.size(), 2U);
  EXPECT_EQ(traffic[0][0].distance, 4 * kBytes) << "the whole step before";
  EXPECT_EQ(traffic[1][0].distance, 2 * kBytes) << "the kernel before";
  EXPECT_EQ(traffic[1][0].bytes, kBytes);
}

TEST(Traffic, BroadcastOperandsAreReadOnce) {
  const runtime::PlannedProgram program = planned({{1000, 8}, {8}}, [](const auto& x) {
    return x[0] + expand(x[1], {1000, 8});
  });
  const auto traffic = cost::trace_traffic(program.kernels, program.plan);
  double bytes = 0;
  for (const cost::Touch& touch : traffic[0]) bytes += touch.bytes;
  EXPECT_EQ(bytes, 2 * 32000 + 32);
}

TEST(WhatIf, ScalesTheTermItNames) {
  const runtime::PlannedProgram program = planned({{500, 500}, {500, 500}}, [](const auto& x) {
    return layer_norm(matmul(x[0], x[1]), {}, {}) + x[0];
  });
  const cost::Prediction now = priced(program);
  const auto total = [&](auto term, const cost::Prediction& prediction) {
    double sum = 0;
    for (const cost::KernelPrediction& kernel : prediction.kernels) sum += kernel.*term;
    return sum;
  };
  const cost::Prediction fast =
      priced(program, cost::parse_what_if("flops=2x,bandwidth=4x,overhead=0"));
  EXPECT_NEAR(total(&cost::KernelPrediction::compute, fast),
              total(&cost::KernelPrediction::compute, now) / 2, 1e-12);
  EXPECT_NEAR(total(&cost::KernelPrediction::memory, fast),
              total(&cost::KernelPrediction::memory, now) / 4, 1e-12);
  EXPECT_EQ(total(&cost::KernelPrediction::overhead, fast), 0);
  EXPECT_EQ(priced(program, {}).seconds(), now.seconds());
}

// The program that mixed precision makes, priced: four products of 1000 x 1000 in bf16 move half the bytes
// between them.
TEST(WhatIf, Bf16IsTheProgramThatThePrecisionPassMakes) {
  const auto chain = [](const auto& x) {
    return matmul(matmul(matmul(matmul(x[0], x[0]), x[0]), x[0]), x[0]);
  };
  const cost::WhatIf what_if = cost::parse_what_if("dtype=bf16");
  ASSERT_EQ(what_if.precision, compiler::Precision::bf16_mixed);
  const cost::Prediction now = priced(planned({{1000, 1000}}, chain));
  const cost::Prediction low =
      priced(planned({{1000, 1000}}, chain, {.precision = {.policy = *what_if.precision}}));
  // In the middle: two operands read and one result written, 4 MB each in f32.
  EXPECT_NEAR(now.kernels[1].memory, 12e6 / 10e9, 1e-9);
  const cost::KernelPrediction& middle = low.kernels[low.kernels.size() - 2];
  EXPECT_NEAR(middle.memory, 6e6 / 10e9, 1e-9);
  EXPECT_EQ(middle.compute, now.kernels[1].compute) << "this machine has no faster bf16 products";
}

TEST(WhatIf, SaysWhatItDoesNotUnderstand) {
  EXPECT_THAT(error_of([] { cost::parse_what_if("speed=2x"); }), HasSubstr("use flops, bandwidth"));
  EXPECT_THAT(error_of([] { cost::parse_what_if("flops"); }), HasSubstr("has no value"));
  EXPECT_THAT(error_of([] { cost::parse_what_if("flops=fast"); }), HasSubstr("write flops=2x"));
  EXPECT_THAT(error_of([] { cost::parse_what_if("flops=2y"); }), HasSubstr("write flops=2x"));
  EXPECT_THAT(error_of([] { cost::parse_what_if("bandwidth=0"); }), HasSubstr("takes forever"));
  EXPECT_THAT(error_of([] { cost::parse_what_if("dtype=i8"); }), HasSubstr("i8"));
  EXPECT_EQ(cost::parse_what_if(""), cost::WhatIf{});
}

TEST(Stages, DifferentiateAddsTheGradientsOfStates) {
  const graph::Graph forward = graph::parse_graph(
      "input %0: f32[2, 3] \"x\"\nstate %1: f32[3, 4] \"w\"\n%2: f32[2, 4] = matmul %0 %1\n"
      "%3: f32[] = sum %2 {axes=[0, 1] keep_dims=false}\nreturn %3\n");
  EXPECT_FALSE(runtime::has_backward(forward));
  const graph::Graph joint = runtime::differentiate(forward);
  EXPECT_TRUE(runtime::has_backward(joint));
  ASSERT_EQ(joint.outputs.size(), 2U);
  EXPECT_EQ(joint.type(joint.outputs[1]).shape, (Shape{3, 4}));
  EXPECT_EQ(joint.states[0].name, "w");
}

}  // namespace
}  // namespace brrr
