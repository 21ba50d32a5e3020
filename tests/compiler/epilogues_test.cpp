// Epilogues of a GPU's products: which kernels they save in a training step, what these kernels cost, and that
// the program still means the same (its ops run on the cpu as what they are composed of).
#include "brrr/compiler/fuse/epilogues.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "brrr/autodiff/grad.h"
#include "brrr/compiler/pipeline.h"
#include "brrr/compiler/rewrite/simplify.h"
#include "brrr/graph/interpret.h"
#include "brrr/graph/print.h"
#include "brrr/graph/trace.h"
#include "brrr/graph/verify.h"
#include "brrr/ops/control/repeat.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/runtime/stages.h"
#include "support/h200.h"
#include "support/plain_step.h"

namespace brrr {
namespace {

constexpr const char* kAllEpilogues = "gelu_epilogue,sum_epilogue,add_epilogue";
constexpr compiler::EpilogueOptions kAnySize{
    .fewest_gelus = 0, .most_summed_bytes = std::numeric_limits<int64_t>::max()};

using Counts = std::map<std::string, int>;
Counts kernel_counts(const compiler::KernelList& list) {
  Counts counts;
  for (const compiler::Kernel& kernel : list.kernels) ++counts[kernel.name];
  return counts;
}
Cost total_cost(const compiler::KernelList& list) {
  Cost total;
  for (const compiler::Kernel& kernel : list.kernels) total += kernel.cost;
  return total;
}

// ---- The step of GPT-2, for which kernels must be compiled in: other builds expand more ops.
constexpr int kLayers = 2;
runtime::PlannedProgram gpt2_step(
    compiler::Precision precision, std::string_view left_out = "",
    compiler::MatmulPrecision products = compiler::MatmulPrecision::ieee) {
  compiler::PipelineOptions pipeline;
  pipeline.device = Device::null(), pipeline.target = h200();
  pipeline.epilogues = kAnySize;
  pipeline.precision.policy = precision;
  pipeline.precision.matmul = products;
  return training::plan_step(plain_step("gpt2-124m", {.batch = 8, .seq = 128, .layers = kLayers},
                                        compiler::without(pipeline, left_out)));
}

TEST(Epilogues, AreTakenForSizesThatGain) {
  const auto counts = [](int64_t batch, int64_t seq) {
    compiler::PipelineOptions pipeline;
    pipeline.device = Device::null(), pipeline.target = h200();
    pipeline.precision.policy = compiler::Precision::bf16_mixed;
    return kernel_counts(
        training::plan_step(
            plain_step("gpt2-124m", {.batch = batch, .seq = seq, .layers = 1}, pipeline))
            .kernels);
  };
  Counts large = counts(64, 1024), small = counts(12, 256);
  EXPECT_EQ(large["matmul_gelu"] + large["matmul_gelu_backward"], 2);
  EXPECT_EQ(small["matmul_gelu"] + small["matmul_gelu_backward"], 0);
  EXPECT_EQ(large["matmul_sums"] + small["matmul_sums"], 0);
  EXPECT_GT(small["matmul_add"], 0);
}

// What has no kernel on a GPU is expanded into what has: nothing may be in the way of that.
TEST(Epilogues, EveryFamilyCompilesForAGpu) {
  for (const char* model : {"gpt2-tiny", "llama-tiny", "llama-moe-tiny", "llama-mla-tiny",
                            "rnn-tiny", "gru-tiny", "lstm-tiny", "mlp", "cnn"}) {
    for (const compiler::Precision precision :
         {compiler::Precision::f32, compiler::Precision::bf16_mixed}) {
      compiler::PipelineOptions pipeline;
      pipeline.device = Device::null(), pipeline.target = h200();
      pipeline.precision.policy = precision;
      EXPECT_NO_THROW(training::plan_step(plain_step(model, {.batch = 2, .seq = 32}, pipeline)))
          << model;
    }
  }
}

TEST(Epilogues, TakeGeluBiasGradientsAndResidualsOfGpt2) {
  for (const compiler::Precision precision :
       {compiler::Precision::bf16_mixed, compiler::Precision::f16_mixed}) {
    const runtime::PlannedProgram with = gpt2_step(precision),
                                  bare = gpt2_step(precision, kAllEpilogues);
    Counts counts = kernel_counts(with.kernels);
    EXPECT_EQ(counts["matmul_gelu"], kLayers);
    EXPECT_EQ(counts["matmul_gelu_backward"], kLayers);
    EXPECT_EQ(counts["matmul_sums"], 4 * kLayers);  // f32 sums: all of them beside the weights
    EXPECT_EQ(counts["matmul_add"], 2 * kLayers);   // attention and MLP of every layer
    for (const auto& [name, count] : counts) {
      EXPECT_EQ(name.find("gelu_tanh"), std::string::npos) << name;
    }
    EXPECT_LE(with.kernels.kernels.size() + 4 * kLayers, bare.kernels.kernels.size());
    EXPECT_LE(with.plan.arena_bytes, bare.plan.arena_bytes);
    const Cost cost = total_cost(with.kernels), before = total_cost(bare.kernels);
    EXPECT_EQ(cost.flops, before.flops);
    EXPECT_LT(cost.bytes_read, before.bytes_read);
    EXPECT_LE(cost.bytes_written, before.bytes_written);
  }
}

// The gradient that goes around a norm is added by the kernel of the norm's gradient: two in a layer, but for the
// first, where the embedding wants the sum in f32.
TEST(Epilogues, NormsAddTheGradientThatGoesAroundThem) {
  const runtime::PlannedProgram with = gpt2_step(compiler::Precision::bf16_mixed);
  int adding = 0;
  for (const compiler::Kernel& kernel : with.kernels.kernels) {
    if (kernel.op == &layer_norm_backward_op && kernel.inputs.size() == 6) {
      ++adding;
      EXPECT_EQ(kernel.inputs[5].layout, kernel.outputs[0].layout);
    }
    if (kernel.phase == graph::Phase::backward) {
      EXPECT_NE(kernel.name, "add");
    }
  }
  EXPECT_EQ(adding, 2 * kLayers - 1);
}

// f32 has its own GELU, and all bias gradients beside the weights'.
TEST(Epilogues, InF32AreSumsAndAdditions) {
  Counts counts = kernel_counts(gpt2_step(compiler::Precision::f32).kernels);
  EXPECT_EQ(counts["matmul_gelu"] + counts["matmul_gelu_backward"], 0);
  EXPECT_EQ(counts["matmul_sums"], 4 * kLayers);
  EXPECT_EQ(counts["matmul_add"], 2 * kLayers);
}

// Sums and results have one dtype: they come with the gradient of GELU.
TEST(Epilogues, InTf32TheBiasGradientComesWithTheGradientOfGelu) {
  const runtime::PlannedProgram with =
      gpt2_step(compiler::Precision::f32, "", compiler::MatmulPrecision::tf32);
  Counts counts = kernel_counts(with.kernels);
  EXPECT_EQ(counts["matmul_gelu_backward"], kLayers);
  EXPECT_EQ(counts["matmul_sums"], 3 * kLayers);
  for (const compiler::Kernel& kernel : with.kernels.kernels) {
    if (kernel.op == &matmul_gelu_backward_op) {
      EXPECT_EQ(kernel.outputs.size(), 2U);
    }
  }
}

TEST(Epilogues, EveryLowPrecisionOfGptTinyHasThem) {
  for (const auto& [policy, products] :
       {std::pair{compiler::Precision::f32, compiler::MatmulPrecision::tf32},
        std::pair{compiler::Precision::bf16_mixed, compiler::MatmulPrecision::ieee},
        std::pair{compiler::Precision::f16_mixed, compiler::MatmulPrecision::ieee}}) {
    compiler::PipelineOptions pipeline;
    pipeline.device = Device::null(), pipeline.target = h200();
    pipeline.epilogues = kAnySize;
    pipeline.precision.policy = policy;
    pipeline.precision.matmul = products;
    const runtime::PlannedProgram plan =
        training::plan_step(plain_step("gpt2-tiny", {.batch = 4, .seq = 32}, pipeline));
    Counts counts = kernel_counts(plan.kernels);
    for (const char* name : {"matmul_gelu", "matmul_gelu_backward", "matmul_sums", "matmul_add"})
      EXPECT_GT(counts[name], 0) << name << " " << compiler::precision_name(policy);
  }
}

// In f16 the sums have the loss scale in them: nothing stands between a product and its sum.
TEST(Epilogues, MicroBatchesAddToTheirSumsInPlace) {
  for (const compiler::Precision policy :
       {compiler::Precision::f32, compiler::Precision::bf16_mixed,
        compiler::Precision::f16_mixed}) {
    graph::Tracer tracer;
    const Tensor count = tracer.add_input({{}, DType::i64}, Device::null(), "count"),
                 x = tracer.add_input({{4, 48, 64}, DType::f32}, Device::null(), "x"),
                 w = empty({128, 64}, DType::f32, Device::null()).require_grad(),
                 b = empty({128}, DType::f32, Device::null()).require_grad();
    const std::vector<Tensor> sums = repeat(count, {x}, [&](const Tensor& part) {
      return grad(sum(square(linear(part, w, b))), {w, b});
    });
    compiler::PipelineOptions options;
    options.epilogues = kAnySize;
    options.device = Device::null(), options.target = h200();
    options.precision.policy = policy;
    const runtime::PlannedProgram plan = runtime::plan_program(tracer.finish(sums), options);
    bool is_seen = false;
    for (const compiler::Kernel& kernel : plan.kernels.kernels) {
      if (!kernel.body) continue;
      for (const compiler::Kernel& inner : kernel.body->list.kernels) {
        EXPECT_NE(inner.name, "copy");
        if (inner.op != &matmul_sums_op) continue;
        ASSERT_EQ(inner.inputs.size(), 3U);
        is_seen |= inner.outputs[0].buffer == inner.inputs[2].buffer;
      }
    }
    EXPECT_TRUE(is_seen) << compiler::precision_name(policy) << "\n"
                         << graph::to_text(plan.graph());
  }
}

TEST(Epilogues, AreLeftOutOneByOne) {
  Counts no_gelu =
      kernel_counts(gpt2_step(compiler::Precision::bf16_mixed, "gelu_epilogue").kernels);
  EXPECT_EQ(no_gelu["matmul_gelu"] + no_gelu["matmul_gelu_backward"], 0);
  EXPECT_EQ(no_gelu["matmul_sums"], 4 * kLayers);
  Counts no_sums =
      kernel_counts(gpt2_step(compiler::Precision::bf16_mixed, "sum_epilogue").kernels);
  EXPECT_EQ(no_sums["matmul_sums"], 0);
  EXPECT_EQ(no_sums["matmul_gelu_backward"], kLayers);
  Counts no_adds =
      kernel_counts(gpt2_step(compiler::Precision::bf16_mixed, "add_epilogue").kernels);
  EXPECT_EQ(no_adds["matmul_add"], 0);
  EXPECT_EQ(no_adds["matmul_gelu"], kLayers);
}

// Every operand once: x, W and bias in, GELU and what it was taken of out.
TEST(Epilogues, CostWhatTheyMove) {
  constexpr int64_t kRows = 8 * 128, kIn = 768, kOut = 3072, kBytes = 2;
  const runtime::PlannedProgram with = gpt2_step(compiler::Precision::bf16_mixed);
  for (const compiler::Kernel& kernel : with.kernels.kernels) {
    if (kernel.op == &matmul_gelu_op) {
      EXPECT_EQ(kernel.cost.bytes_read, kBytes * (kRows * kIn + kIn * kOut + kOut));
      EXPECT_EQ(kernel.cost.bytes_written, kBytes * 2 * kRows * kOut);
      EXPECT_EQ(kernel.cost.flops, kRows * kOut * (2 * kIn + 1 + gelu_tanh_op.flops_per_element));
    } else if (kernel.op == &matmul_gelu_backward_op) {
      EXPECT_EQ(kernel.cost.bytes_read, kBytes * (kRows * kIn + kIn * kOut + kRows * kOut));
      EXPECT_EQ(kernel.cost.bytes_written, kBytes * kRows * kOut);
    }
  }
}

// The aux output is the very buffer that the backward part reads.
TEST(Epilogues, TheGradientOfGeluReadsWhatTheForwardPartKept) {
  const runtime::PlannedProgram with = gpt2_step(compiler::Precision::bf16_mixed);
  std::vector<compiler::BufferId> kept;
  for (const compiler::Kernel& kernel : with.kernels.kernels) {
    if (kernel.op == &matmul_gelu_op) kept.push_back(kernel.outputs[1].buffer);
    if (kernel.op != &matmul_gelu_backward_op) continue;
    ASSERT_FALSE(kept.empty());
    EXPECT_EQ(kernel.inputs[2].buffer, kept.back());  // layers go back in the other order
    EXPECT_EQ(kernel.inputs[2].layout.offset, 0);
    EXPECT_TRUE(kernel.inputs[2].layout.is_contiguous());
    kept.pop_back();
  }
  EXPECT_TRUE(kept.empty());
}

TEST(Epilogues, AreNoneOnTheCpu) {
  const graph::Graph step =
      training::trace_step(plain_step("gpt2-tiny", {.batch = 2, .seq = 16, .layers = 1}));
  const runtime::PlannedProgram with = runtime::plan_program(step);
  const runtime::PlannedProgram bare =
      runtime::plan_program(step, compiler::without({}, kAllEpilogues));
  EXPECT_EQ(graph::to_text(with.graph()), graph::to_text(bare.graph()));
  EXPECT_EQ(kernel_counts(with.kernels), kernel_counts(bare.kernels));
  EXPECT_EQ(with.find("gelu_epilogue"), nullptr);
}

// Gradients of micro-batches are added where the sums are: no copy behind the body.
TEST(Epilogues, AccumulateInPlace) {
  const graph::Graph graph = graph::parse_graph(R"(input %0: f32[8, 16] "x"
input %1: f32[8, 32] "dy"
state %2: f32[32, 16] "sum"
backward
%3: f32[32, 8] = transpose %1 {a=0 b=1}
%4: f32[32, 16] = matmul %3 %0
%5: f32[32, 16] = add %2 %4
write "sum" %5
return
)");
  compiler::PipelineOptions options;
  options.epilogues = kAnySize;
  options.device = Device::null(), options.target = h200();
  const compiler::KernelList list = runtime::plan_program(graph, options).kernels;
  ASSERT_EQ(list.kernels.size(), 1U);
  EXPECT_EQ(list.kernels[0].op, &matmul_add_op);
  EXPECT_EQ(list.kernels[0].outputs[0].buffer, list.kernels[0].inputs[2].buffer);
}

// ---- Meaning.
std::vector<Tensor> samples(const std::vector<TensorType>& types, uint32_t seed) {
  std::vector<Tensor> made;
  for (const TensorType& type : types)
    made.push_back(cast(sample_values(type.shape, seed++, -1, 1), type.dtype));
  return made;
}

// Outputs, then states, from samples in place of inputs and states.
std::vector<Tensor> run_op_by_op(const graph::Graph& graph) {
  std::vector<TensorType> inputs, states;
  for (const graph::GraphInput& input : graph.inputs) inputs.push_back(graph.type(input.value));
  for (const graph::StateSlot& state : graph.states) states.push_back(graph.type(state.before));
  graph::Interpreted run = graph::interpret(graph, samples(inputs, 900), samples(states, 950));
  run.outputs.insert(run.outputs.end(), run.states.begin(), run.states.end());
  return run.outputs;
}

double relative_error(const Tensor& got, const Tensor& expected) {
  const Tensor a = cast(got, DType::f64), b = cast(expected, DType::f64);
  return std::sqrt(sum(square(a - b)).item<double>() /
                   std::max(1e-30, sum(square(b)).item<double>()));
}

// x + down(gelu(up(x))) with the gradients of all parameters, which are added to sums.
graph::Graph mlp_step(DType dtype) {
  constexpr int64_t kIn = 16, kHidden = 32;
  graph::Tracer tracer;
  const Tensor x = tracer.add_input({{3, 8, kIn}, dtype}, Device::cpu(), "x");
  std::vector<Tensor> parameters, sums;
  for (const Shape& shape :
       {Shape{kHidden, kIn}, Shape{kHidden}, Shape{kIn, kHidden}, Shape{kIn}}) {
    parameters.push_back(empty(shape, dtype).require_grad());
    sums.push_back(empty(shape, dtype));
  }
  const Tensor hidden = gelu_tanh(linear(x, parameters[0], parameters[1]));
  const Tensor y = x + linear(hidden, parameters[2], parameters[3]);
  const Tensor loss = sum(square(y));
  const std::vector<Tensor> gradients = grad(loss, parameters);
  NoGrad update;
  for (size_t i = 0; i < sums.size(); ++i) sums[i].copy_from(sums[i] + gradients[i]);
  return compiler::simplify(tracer.finish(std::vector<Tensor>{loss, y}));
}

TEST(Epilogues, ChangeNothingButRounding) {
  for (const auto& [dtype, tolerance] :
       {std::pair{DType::f32, 2e-6}, std::pair{DType::bf16, 2e-2}, std::pair{DType::f16, 2e-3}}) {
    const graph::Graph before = mlp_step(dtype);
    const graph::Graph gelus_taken = compiler::take_gelu_epilogues(before, h200(), kAnySize);
    const graph::Graph after = compiler::take_add_epilogues(
        compiler::take_sum_epilogues(gelus_taken, h200(), kAnySize), h200(), kAnySize);
    graph::verify(after, "epilogues");
    Counts ops;
    for (const graph::Node& node : after.nodes) ++ops[std::string(node.op->name)];
    const int gelus = dtype == DType::f32 ? 0 : 1;
    EXPECT_EQ(ops["matmul_gelu"], gelus) << graph::to_text(after);
    EXPECT_EQ(ops["matmul_gelu_backward"], gelus);
    EXPECT_EQ(ops["matmul_sums"], 2 - gelus);  // those of the first layer come with GELU's gradient
    EXPECT_EQ(ops["matmul_add"], 1 + gelus);   // the residual, and a gradient without sums
    EXPECT_EQ(ops["gelu_tanh"] + ops["gelu_tanh_backward"], 2 - 2 * gelus);
    const std::vector<Tensor> expected = run_op_by_op(before), got = run_op_by_op(after);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].type(), expected[i].type());
      EXPECT_LT(relative_error(got[i], expected[i]), tolerance)
          << to_text(dtype) << " result " << i;
    }
  }
}

// First moments of AdamW are gradients times a number: each of them, biases included.
TEST(Epilogues, Gpt2HasTheSameGradients) {
  for (const auto& [policy, tolerance] : {std::pair{compiler::Precision::f32, 2e-5},
                                          std::pair{compiler::Precision::bf16_mixed, 3e-2}}) {
    compiler::PipelineOptions pipeline;
    pipeline.device = Device::null(), pipeline.target = h200();
    pipeline.epilogues = kAnySize;
    pipeline.precision.policy = policy;
    const HostStep step(plain_step("gpt2-tiny", {.batch = 2, .seq = 16, .layers = 2}, pipeline));
    const runtime::PlannedProgram plan = runtime::plan_program(step.trace(), pipeline);
    ASSERT_NE(plan.find("rematerialize"), nullptr);
    const graph::Interpreted expected = graph::interpret(*plan.find("rematerialize"), step.inputs),
                             got = graph::interpret(plan.graph(), step.inputs);
    EXPECT_LT(relative_error(got.outputs[0], expected.outputs[0]), tolerance);
    int gradients = 0;
    for (size_t i = 0; i < got.states.size(); ++i) {
      const std::string& name = plan.graph().states[i].name;
      if (!name.starts_with("first.")) continue;
      ++gradients;
      EXPECT_LT(relative_error(got.states[i], expected.states[i]), tolerance) << name;
    }
    EXPECT_EQ(gradients, 2 + 12 * 2 + 2);
  }
}

}  // namespace
}  // namespace brrr
