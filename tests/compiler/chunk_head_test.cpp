// Heads in chunks: which are cut, that the program still means the same, and what memory it takes.
#include "brrr/compiler/head/chunk_head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "brrr/autodiff/grad.h"
#include "brrr/compiler/pipeline.h"
#include "brrr/graph/interpret.h"
#include "brrr/graph/print.h"
#include "brrr/graph/trace.h"
#include "brrr/graph/verify.h"
#include "brrr/nn/families/gpt2.h"
#include "brrr/ops/control/repeat.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/loss/cross_entropy.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/compile.h"
#include "brrr/runtime/stages.h"
#include "support/h200.h"
#include "support/plain_step.h"
#include "support/square_tokens.h"

namespace brrr {
namespace {

// As many rows as the least that a chunk may have.
compiler::ChunkHeadOptions chunks_of(int64_t rows) {
  return {.chunk_bytes = 0, .min_rows = rows, .row_multiple = 1};
}

int count_ops(const graph::Graph& graph, const OpDef& op) {
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                        [&](const graph::Node& node) { return node.op == &op; }));
}

// The most elements that a value with this many columns has.
int64_t largest_with(const graph::Graph& graph, int64_t columns) {
  int64_t largest = 0;
  for (const graph::Node& node : graph.nodes) {
    for (graph::ValueId id : node.outputs) {
      const Shape& shape = graph.type(id).shape;
      const bool is_wide = shape.size() >= 2 && shape.back() == columns;
      if (is_wide) largest = std::max(largest, numel(shape));
    }
  }
  return largest;
}

// All results of a run, and the graph that made them.
std::vector<std::vector<float>> results_of(runtime::CompiledFunction& function,
                                           std::span<const Tensor> inputs, graph::Graph& graph) {
  runtime::Executable& program = function.executable(inputs);
  graph = program.graph();
  std::vector<std::vector<float>> results;
  for (const Tensor& x : program.run(inputs)) results.push_back(x.to_vector<float>());
  return results;
}

// ---- sizes ----

TEST(ChunkRows, AreAllWhereLogitsAreSmall) {
  constexpr int64_t kRowBytes = 2 * 50304;
  EXPECT_EQ(compiler::chunk_rows(10240, kRowBytes, {}), 10240);  // 0.96 GiB
  EXPECT_EQ(compiler::chunk_rows(64 * 12, 4 * 50257, {}), 64 * 12);
  EXPECT_EQ(compiler::chunk_rows(7000, 1 << 20, {}), 7000);  // two chunks would have too few rows
  EXPECT_EQ(compiler::chunk_rows(0, kRowBytes, {}), 0);
}

TEST(ChunkRows, AreEqualPartsWhereThereAreSome) {
  EXPECT_EQ(compiler::chunk_rows(64 * 1024, 2 * 50304, {}), 8192);  // GPT-2 124M, 0.77 GiB each
  EXPECT_EQ(compiler::chunk_rows(32 * 1024, 2 * 50304, {}), 8192);
  EXPECT_EQ(compiler::chunk_rows(16 * 1024, 4 * 128256, {}), 4096);  // 2 GiB, but no fewer rows
}

TEST(ChunkRows, AreWholeTilesAndFitOtherwise) {
  const int64_t rows = compiler::chunk_rows(50000, 2 * 50304, {});
  EXPECT_EQ(rows, 10112);  // five chunks
  EXPECT_EQ(rows % 128, 0);
  EXPECT_LE(rows * 2 * 50304, int64_t{1} << 30);
}

// Chunks are not cut again.
TEST(ChunkRows, OfAChunkAreAllOfIt) {
  for (const int64_t row_bytes : {1000, 100608, 513024, 10000000}) {
    for (int64_t rows = 1; rows < 1 << 20; rows = rows * 5 / 4 + 1) {
      const int64_t chunk = compiler::chunk_rows(rows, row_bytes, {});
      ASSERT_GT(chunk, 0);
      EXPECT_EQ(compiler::chunk_rows(chunk, row_bytes, {}), chunk) << rows << " of " << row_bytes;
      EXPECT_TRUE(chunk == rows || chunk >= 4096) << chunk;
    }
  }
}

// ---- the step of GPT-2 ----

constexpr int64_t kVocab = 64, kRows = 3 * 16;

// Losses of all rows and the gradients of all parameters.
struct Step {
  Random random{3};
  Gpt2 model{{.vocab = kVocab, .context = 16, .layers = 2, .heads = 2, .width = 32}, random};
  SquareTokens batch{{3, 16}};
  CrossEntropyOptions loss_options;

  auto compiled(const compiler::PipelineOptions& options) {
    return runtime::compile(
        [this](const Tensor& tokens, const Tensor& targets) {
          const Tensor losses = cross_entropy_each(model.logits(tokens), targets, loss_options);
          Tensors results{losses.detach()};
          for (const Tensor& g : grad(mean(losses), parameters())) results.push_back(g);
          return results;
        },
        options);
  }
  std::vector<Tensor> parameters() const {
    std::vector<Tensor> found;
    for (const NamedTensor& p : model.named_parameters()) found.push_back(p.tensor);
    return found;
  }
};

struct Outcome {
  graph::Graph graph;
  std::vector<std::vector<float>> run, interpreted;
};
Outcome outcome_of(Step& step, const compiler::PipelineOptions& options) {
  auto compiled = step.compiled(options);
  const Tensor inputs[] = {step.batch.tokens, step.batch.targets};
  runtime::Executable& program = compiled.function().executable(inputs);
  Outcome made{.graph = program.graph(), .run = {}, .interpreted = {}};
  for (const Tensor& x : graph::interpret(program.graph(), inputs).outputs)
    made.interpreted.push_back(x.to_vector<float>());
  for (const Tensor& x : program.run(inputs)) made.run.push_back(x.to_vector<float>());
  return made;
}

// Relative to the largest: sums over rows in another order.
void expect_near(const std::vector<float>& found, const std::vector<float>& expected,
                 double tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 0, difference = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    difference = std::max(difference, std::abs(static_cast<double>(found[i]) - expected[i]));
  }
  EXPECT_LE(difference, tolerance * largest) << what;
}

void expect_same_step(const compiler::PipelineOptions& given,
                      const CrossEntropyOptions& loss_options, double tolerance) {
  for (const int64_t rows : {16, 20, 24}) {
    compiler::PipelineOptions options = given;
    options.head = chunks_of(rows);
    compiler::PipelineOptions whole = options;
    whole.without.insert("chunk_head");
    Step step;
    step.loss_options = loss_options;
    const Outcome cut = outcome_of(step, options), uncut = outcome_of(step, whole);
    EXPECT_EQ(largest_with(uncut.graph, kVocab), kRows * kVocab);
    EXPECT_LE(largest_with(cut.graph, kVocab), 2 * rows * kVocab) << graph::to_text(cut.graph);
    EXPECT_EQ(count_ops(cut.graph, cross_entropy_backward_op),
              count_ops(cut.graph, cross_entropy_op));
    EXPECT_GE(count_ops(cut.graph, cross_entropy_op), 2);
    EXPECT_EQ(cut.run, cut.interpreted);
    EXPECT_EQ(cut.run[0], uncut.run[0]) << "losses have other bits";
    for (size_t i = 1; i < cut.run.size(); ++i)
      expect_near(cut.run[i], uncut.run[i], tolerance, join_text("gradient ", i));
  }
}

TEST(ChunkHead, KeepsLossesAndGradientsInF32) { expect_same_step({}, {}, 1e-5); }

// dX has the same bits, so gradients differ by the order of the sum of one of them, rounded nowhere else.
TEST(ChunkHead, KeepsLossesAndGradientsInMixedPrecision) {
  for (const compiler::Precision policy :
       {compiler::Precision::bf16_mixed, compiler::Precision::f16_mixed})
    expect_same_step({.precision = {.policy = policy}}, {}, 1e-5);
}

// The scale of dlogits is that of the steps before; the largest of it is found chunk by chunk.
TEST(ChunkHead, KeepsLossesAndGradientsInFp8) {
  expect_same_step({.precision = {.policy = compiler::Precision::fp8_mixed}}, {}, 1e-5);
}

TEST(ChunkHead, KeepsEveryOptionOfTheLoss) {
  expect_same_step({}, {.ignore_index = 3, .label_smoothing = 0.1, .soft_cap = 5, .z_loss = 0.01},
                   1e-5);
}

TEST(ChunkHead, KeepsThemWithEveryChoiceOfRecomputation) {
  for (const compiler::RematPolicy policy :
       {compiler::RematPolicy::none, compiler::RematPolicy::selective, compiler::RematPolicy::full})
    expect_same_step({.remat = {.policy = policy}}, {}, 1e-5);
}

TEST(ChunkHead, KeepsThemWithoutOtherPasses) {
  expect_same_step({.without = {"simplify"}}, {}, 1e-5);
  expect_same_step({.without = {"fuse"}}, {}, 1e-5);
  expect_same_step({.without = {"plan_memory"}}, {}, 1e-5);
}

// A second run would make what is there: logits, losses, and the operand of the head.
TEST(ChunkHead, NothingOfItRunsAgain) {
  for (const compiler::RematPolicy policy :
       {compiler::RematPolicy::selective, compiler::RematPolicy::full}) {
    Step step;
    compiler::PipelineOptions options{.remat = {.policy = policy}};
    options.head = chunks_of(16);
    const Outcome made = outcome_of(step, options);
    int recomputed = 0;
    for (const graph::Node& node : made.graph.nodes) {
      if (node.phase != graph::Phase::recompute) continue;
      ++recomputed;
      EXPECT_NE(node.op, &cross_entropy_op);
      EXPECT_NE(node.scope, "head");
      EXPECT_NE(node.scope, "ln_f");
    }
    EXPECT_GT(recomputed, 0);
  }
}

// Where logits are most of the memory, a quarter of it is enough, and no product of the head runs again.
TEST(ChunkHead, MakesRoomWithinABudget) {
  compiler::PipelineOptions pipeline{.head = chunks_of(128)};
  const graph::Graph joint = training::trace_step(
      plain_step("gpt2-tiny", {.batch = 16, .seq = 64, .layers = 2, .vocab = 4096}, pipeline));
  const int64_t whole =
      runtime::plan_program(joint, compiler::without(pipeline, "chunk_head")).plan.arena_bytes;
  EXPECT_GE(whole, 1024 * 4096 * 4);
  pipeline.remat.memory_budget = Bytes(whole / 4);
  const runtime::PlannedProgram fitted = runtime::plan_program(joint, pipeline);
  EXPECT_LE(fitted.plan.arena_bytes, whole / 4);
  int recomputed = 0;
  for (const graph::Node& node : fitted.graph().nodes) {
    if (node.phase != graph::Phase::recompute) continue;
    ++recomputed;
    EXPECT_NE(node.scope, "head");
    EXPECT_NE(node.op, &cross_entropy_op);
  }
  EXPECT_GT(recomputed, 0);
}

TEST(ChunkHead, LeavesSmallHeadsAlone) {
  for (const char* model : {"gpt2-tiny", "char-gpt", "gpt2-124m"}) {
    const runtime::PlannedProgram plan = runtime::plan_program(
        training::trace_step(plain_step(model, {.batch = 4, .seq = 64, .layers = 1})));
    const graph::Graph *before = plan.find("simplify"), *after = plan.find("chunk_head");
    ASSERT_TRUE(before && after);
    EXPECT_EQ(graph::to_text(*after), graph::to_text(*before)) << model;
  }
}

// ---- memory ----

struct Plan {
  runtime::PlannedProgram with, without_it;
};
Plan plan_of(compiler::Precision policy, const compiler::Target& target) {
  compiler::PipelineOptions pipeline;
  pipeline.device = Device::null(), pipeline.target = target;
  pipeline.precision.policy = policy;
  const graph::Graph joint = training::trace_step(
      plain_step("gpt2-124m", {.batch = 64, .seq = 1024, .layers = 1, .vocab = 50304}, pipeline));
  return {runtime::plan_program(joint, pipeline),
          runtime::plan_program(joint, compiler::without(pipeline, "chunk_head"))};
}

int64_t traffic(const runtime::PlannedProgram& plan) {
  int64_t bytes = 0;
  for (const compiler::Kernel& kernel : plan.kernels.kernels)
    bytes += kernel.cost.bytes_read + kernel.cost.bytes_written;
  return bytes;
}

constexpr int64_t kBatchRows = 65536, kColumns = 50304, kWidth = 768;

// The arena holds one chunk of logits, over which its gradient is written, in place of all, and at most
// `copies` of dW and two of dX beside it.
void expect_one_chunk(const Plan& plan, int64_t element_bytes, int copies) {
  const int64_t row_bytes = kColumns * element_bytes,
                rows = compiler::chunk_rows(kBatchRows, row_bytes, {});
  const int64_t dw = copies * 4 * kColumns * kWidth, dx = 2 * kBatchRows * kWidth * element_bytes;
  EXPECT_EQ(largest_with(plan.with.graph(), kColumns), rows * kColumns);
  EXPECT_GE(plan.without_it.plan.arena_bytes, kBatchRows * row_bytes);
  EXPECT_LE(plan.with.plan.arena_bytes,
            plan.without_it.plan.arena_bytes - (kBatchRows - rows) * row_bytes + dw + dx);
  // Every chunk reads W twice, and reads dW and writes it; x and dx are copied at most once.
  const int64_t moved = kBatchRows / rows * kColumns * kWidth * (2 * element_bytes + 8) +
                        4 * kBatchRows * kWidth * element_bytes;
  EXPECT_LE(traffic(plan.with), traffic(plan.without_it) + moved);
}

// An addition does not write over its addend there: the product lands in its result.
TEST(ChunkHead, OneChunkOfLogitsIsInMemoryOnTheCpu) {
  expect_one_chunk(plan_of(compiler::Precision::f32, compiler::cpu_target()), 4, 2);
}

TEST(ChunkHead, OneChunkOfLogitsIsInMemoryOnAGpu) {
  const Plan plan = plan_of(compiler::Precision::bf16_mixed, h200());
  expect_one_chunk(plan, 2, 0);
  // dW of all chunks but the first is added in place, by the products themselves.
  int in_place = 0;
  for (const compiler::Kernel& kernel : plan.with.kernels.kernels) {
    if (kernel.op != &matmul_add_op || kernel.outputs[0].layout.shape != Shape{kColumns, kWidth})
      continue;
    const auto offset = [&](const compiler::OperandRef& ref) {
      return plan.with.plan.offsets[ref.buffer.index()];
    };
    in_place += offset(kernel.inputs[2]) == offset(kernel.outputs[0]) ? 1 : 0;
  }
  EXPECT_EQ(in_place, 7);
}

// ---- other programs ----

struct Traced {
  graph::Graph graph;
  std::vector<Tensor> inputs;
};
// x [40, 16] times w [24, 16] and 40 targets.
using Program = std::function<Tensors(const Tensor& x, const Tensor& w, const Tensor& targets)>;
Traced traced(const Program& program) {
  std::vector<int64_t> targets;
  for (int64_t i = 0; i < 40; ++i) targets.push_back(i * 7 % 24);
  Traced made{.graph = {},
              .inputs = {cast(sample_values({40, 16}, 1), DType::f32), from_values(targets, {40})}};
  const Tensor w = cast(sample_values({24, 16}, 2), DType::f32).require_grad();
  graph::Tracer tracer;
  const Tensor x = tracer.add_input({{40, 16}, DType::f32}, Device::cpu(), "x"),
               t = tracer.add_input({{40}, DType::i64}, Device::cpu(), "targets");
  made.graph = tracer.finish(program(x.require_grad(), w, t));
  return made;
}

graph::Graph checked(const graph::Graph& graph) {
  graph::Graph result = compiler::chunk_heads(graph, chunks_of(8));
  graph::verify(result, "chunk_head");
  return result;
}

void expect_cut(const Program& program) {
  const Traced made = traced(program);
  const graph::Graph cut = checked(made.graph);
  EXPECT_LT(largest_with(cut, 24), 40 * 24) << graph::to_text(cut);
  EXPECT_EQ(count_ops(cut, cross_entropy_op), 5 * count_ops(made.graph, cross_entropy_op));
  const graph::Interpreted found = graph::interpret(cut, made.inputs),
                           expected = graph::interpret(made.graph, made.inputs);
  for (size_t i = 0; i < expected.outputs.size(); ++i)
    expect_near(found.outputs[i].to_vector<float>(), expected.outputs[i].to_vector<float>(), 1e-5,
                join_text("output ", i));
}

void expect_whole(const Program& program) {
  const Traced made = traced(program);
  EXPECT_EQ(graph::to_text(checked(made.graph)), graph::to_text(made.graph));
}

Tensors with_gradients(const Tensor& loss, const std::vector<Tensor>& of) {
  Tensors results{loss.detach()};
  for (const Tensor& g : grad(loss, of)) results.push_back(g);
  return results;
}

TEST(ChunkHead, TakesWeightsOfEitherOrderAndABias) {
  expect_cut([](const Tensor& x, const Tensor& w, const Tensor& t) {
    return with_gradients(mean(cross_entropy_each(matmul(x, transpose(w, 0, 1)), t)), {x, w});
  });
  expect_cut([](const Tensor& x, const Tensor& w, const Tensor& t) {
    const Tensor bias = cast(sample_values({24}, 3), DType::f32).require_grad();
    return with_gradients(mean(cross_entropy_each(linear(x, w, bias), t)), {x, w, bias});
  });
}

TEST(ChunkHead, TakesOpsOfOneElementBeforeTheLoss) {
  expect_cut([](const Tensor& x, const Tensor& w, const Tensor& t) {
    return with_gradients(mean(cross_entropy_each(5.0 * tanh(linear(x, w) / 5.0), t)), {x, w});
  });
}

// Weights of rows are known beforehand; a head that is only evaluated has no backward part.
TEST(ChunkHead, TakesWeightedLossesAndLossesAlone) {
  expect_cut([](const Tensor& x, const Tensor& w, const Tensor& t) {
    const Tensor losses = cross_entropy_each(linear(x, w), t);
    return with_gradients(sum(losses * cast(t, DType::f32)), {x, w});
  });
  expect_cut([](const Tensor& x, const Tensor& w, const Tensor& t) {
    return Tensors{cross_entropy(linear(x, w), t)};
  });
}

// The filling of a vocabulary is in the matrix and in the rows of logits, and the loss leaves it out.
TEST(ChunkHead, TakesAHeadThatIsFilledUp) {
  constexpr int64_t kFilled = 72;
  const auto gradients = [&](const compiler::PipelineOptions& options, graph::Graph& graph) {
    Step step;
    auto compiled = runtime::compile(
        [&](const Tensor& tokens, const Tensor& targets) {
          const Tensor loss = step.model.losses(tokens, targets, {}, {}, kFilled).total;
          return with_gradients(loss, step.parameters());
        },
        options);
    const Tensor inputs[] = {step.batch.tokens, step.batch.targets};
    return results_of(compiled.function(), inputs, graph);
  };
  graph::Graph cut, uncut;
  compiler::PipelineOptions options;
  options.head = chunks_of(16);
  const auto found = gradients(options, cut),
             expected = gradients(compiler::without(options, "chunk_head"), uncut);
  EXPECT_EQ(largest_with(cut, kFilled), 16 * kFilled);
  EXPECT_EQ(largest_with(uncut, kFilled), kRows * kFilled);
  EXPECT_EQ(found[0], expected[0]);
  for (size_t i = 1; i < found.size(); ++i)
    expect_near(found[i], expected[i], 1e-5, join_text("gradient ", i));
}

// Terms of a sum in bf16 are kept in f32: a sum of 5 chunks has the rounding of one product.
TEST(ChunkHead, SumsInF32) {
  const Program program = [](const Tensor& x, const Tensor& w, const Tensor& t) {
    const Tensor low = cast(w, DType::bf16).detach().require_grad();
    const Tensor losses = cross_entropy_each(linear(cast(x, DType::bf16), low), t);
    return Tensors{cast(grad(mean(losses), {low})[0], DType::f32)};
  };
  const Traced made = traced(program);
  const graph::Graph cut = checked(made.graph);
  EXPECT_EQ(largest_with(cut, 24), 8 * 24);
  expect_near(graph::interpret(cut, made.inputs).outputs[0].to_vector<float>(),
              graph::interpret(made.graph, made.inputs).outputs[0].to_vector<float>(), 1.0 / 256,
              "dw");
}

TEST(ChunkHead, LeavesHeadsWhoseGradientsDependOnTheLosses) {
  expect_whole([](const Tensor& x, const Tensor& w, const Tensor& t) {
    return with_gradients(mean(square(cross_entropy_each(linear(x, w), t))), {x, w});
  });
}

TEST(ChunkHead, LeavesLogitsThatOthersRead) {
  expect_whole([](const Tensor& x, const Tensor& w, const Tensor& t) {
    const Tensor logits = linear(x, w);
    Tensors results = with_gradients(mean(cross_entropy_each(logits, t)), {x, w});
    results.push_back(logits.detach());
    return results;
  });
  expect_whole([](const Tensor& x, const Tensor& w, const Tensor& t) {
    const Tensor logits = linear(x, w);
    return with_gradients(mean(cross_entropy_each(logits, t)) + mean(logsumexp(logits, {-1})),
                          {x, w});
  });
  // Rows that meet each other: a norm over the batch.
  expect_whole([](const Tensor& x, const Tensor& w, const Tensor& t) {
    const Tensor logits = linear(x, w);
    const Tensor centered = logits - mean(logits, {0}, KeepDims::yes);
    return with_gradients(mean(cross_entropy_each(centered, t)), {x, w});
  });
}

// A model with two heads has both of them cut.
TEST(ChunkHead, TakesSeveralHeads) {
  expect_cut([](const Tensor& x, const Tensor& w, const Tensor& t) {
    const Tensor other = cast(sample_values({24, 16}, 4), DType::f32).require_grad();
    return with_gradients(
        mean(cross_entropy_each(linear(x, w), t)) + mean(cross_entropy_each(linear(x, other), t)),
        {x, w, other});
  });
}

// Micro-batches: the head is in the body of the repeat.
TEST(ChunkHead, IsCutInsideOfARepeat) {
  const SquareTokens batch({6, 16});
  Step model;
  const auto run = [&](const compiler::PipelineOptions& options, graph::Graph& graph) {
    auto step = runtime::compile(
        [&](const Tensor& count, const Tensor& tokens, const Tensor& targets) {
          const std::vector<Tensor> sums =
              repeat(count, {tokens, targets}, [&](const Tensor& part, const Tensor& next) {
                const Tensor loss = model.model.loss(part, next);
                std::vector<Tensor> all{loss.detach()};
                for (const Tensor& g : grad(loss, model.parameters())) all.push_back(g);
                return all;
              });
          return Tensors(std::span<const Tensor>(sums));
        },
        options);
    const Tensor inputs[] = {from_values<int64_t>({2}, {}), reshape(batch.tokens, {2, 3, 16}),
                             reshape(batch.targets, {2, 3, 16})};
    return results_of(step.function(), inputs, graph);
  };
  graph::Graph cut, uncut;
  compiler::PipelineOptions options;
  options.head = chunks_of(16);
  const auto found = run(options, cut),
             expected = run(compiler::without(options, "chunk_head"), uncut);
  const auto body_of = [](const graph::Graph& graph) {
    const auto node = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                   [](const graph::Node& n) { return n.body != nullptr; });
    return *node->body;
  };
  EXPECT_EQ(largest_with(body_of(cut), kVocab), 16 * kVocab);
  EXPECT_EQ(largest_with(body_of(uncut), kVocab), kRows * kVocab);
  EXPECT_EQ(found[0], expected[0]);
  for (size_t i = 1; i < found.size(); ++i)
    expect_near(found[i], expected[i], 1e-5, join_text("sum ", i));
}

}  // namespace
}  // namespace brrr
