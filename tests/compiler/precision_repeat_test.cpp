// Micro-batches in mixed precision: a step over the parts of a batch is the step over the whole.
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/autodiff/grad.h"
#include "brrr/compiler/precision/precision_table.h"
#include "brrr/ops/control/repeat.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/compile.h"
#include "compiler/low_precision.h"
#include "compiler/small_gpt.h"
#include "support/error_of.h"
#include "support/square_tokens.h"

namespace brrr {
namespace {

const graph::Graph& body_of(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes) {
    if (node.body) return *node.body;
  }
  throw std::runtime_error("the program has no repeat");
}

// ---- a small GPT whose batch of 4 rows is cut in parts ----

constexpr int64_t kBatch = 4, kSeq = 16;

struct Training : SmallGpt {
  int64_t parts;
  SquareTokens batch;
  Tensor count;

  explicit Training(int64_t part_count)
      : parts(part_count), batch({parts, kBatch / parts, kSeq}), count(count_of(parts)) {}

  std::vector<Tensor> inputs() const { return {batch.tokens, batch.targets, count}; }

  // Gradients of the mean loss and behind them that loss; one part has no repeat.
  std::vector<Tensor> backward(const Tensor& x, const Tensor& y, const Tensor& n) {
    const auto part = [&](const Tensor& x_i, const Tensor& y_i) {
      const Tensor loss = model.loss(x_i, y_i) * (1 / static_cast<double>(parts));
      std::vector<Tensor> results = grad(loss, optimizer.parameters());
      results.push_back(loss.detach());
      return results;
    };
    return parts == 1 ? part(x[0], y[0]) : repeat(n, {x, y}, part);
  }
  auto gradients(const compiler::PipelineOptions& options) {
    return runtime::compile(
        [this](const Tensor& x, const Tensor& y, const Tensor& n) { return backward(x, y, n); },
        options);
  }
  auto step(const compiler::PipelineOptions& options) {
    return runtime::compile(
        [this](const Tensor& x, const Tensor& y, const Tensor& n) {
          std::vector<Tensor> grads = backward(x, y, n);
          const Tensor loss = grads.back();
          grads.pop_back();
          update(std::move(grads));
          return loss;
        },
        options);
  }
  std::vector<float> losses(const compiler::PipelineOptions& options, int steps) {
    auto compiled = step(options);
    return losses_of(compiled, steps, batch.tokens, batch.targets, count);
  }
  graph::Graph program(const compiler::PipelineOptions& options) {
    return step(options).function().executable(inputs()).graph();
  }
};

double relative_error(const Tensor& found, const Tensor& expected) {
  const Tensor difference = cast(found, DType::f64) - cast(expected, DType::f64);
  return std::sqrt(sum(square(difference)).item<double>() /
                   sum(square(cast(expected, DType::f64))).item<double>());
}

// What a part rounds does not depend on the others, and the scales of a step are those of the steps before: what
// differs is the order of the f32 sums over rows.
TEST(PrecisionInBodies, OneStepIsThatOfTheWholeBatch) {
  const compiler::PipelineOptions cases[] = {
      with_policy(compiler::Precision::bf16_mixed), f16_options(),
      f16_options({.kind = compiler::LossScaling::fixed, .initial = 3000}), fp8_options()};
  for (const compiler::PipelineOptions& options : cases) {
    Training whole(1);
    const std::vector<Tensor> expected =
        whole.gradients(options)(whole.batch.tokens, whole.batch.targets, whole.count);
    for (int64_t parts : {2, 4}) {
      Training cut(parts);
      const std::vector<Tensor> found =
          cut.gradients(options)(cut.batch.tokens, cut.batch.targets, cut.count);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].dtype(), DType::f32);
        EXPECT_LT(relative_error(found[i], expected[i]), 1e-5)
            << compiler::precision_name(options.precision.policy) << ", " << parts
            << " parts, gradient " << i;
      }
    }
  }
}

// A power of two leaves no trace: the sums are those of the parts run one by one and added in f32, bit by bit.
TEST(PrecisionInBodies, SumsAreThoseOfPartsAddedByHand) {
  for (const compiler::LossScaling kind :
       {compiler::LossScaling::fixed, compiler::LossScaling::dynamic,
        compiler::LossScaling::none}) {
    Training cut(4);
    const compiler::PipelineOptions options = f16_options({.kind = kind, .initial = 1024});
    const std::vector<Tensor> found =
        cut.gradients(options)(cut.batch.tokens, cut.batch.targets, cut.count);
    auto one = runtime::compile(
        [&](const Tensor& x, const Tensor& y) {
          return grad(cut.model.loss(x, y) * 0.25, cut.optimizer.parameters());
        },
        options);
    std::vector<Tensor> expected;
    for (int64_t i = 0; i < cut.parts; ++i) {
      const std::vector<Tensor> grads =
          one(contiguous(cut.batch.tokens[i]), contiguous(cut.batch.targets[i]));
      for (size_t p = 0; p < grads.size(); ++p) {
        if (i == 0) expected.push_back(zeros(grads[p].shape()));
        expected[p] = expected[p] + grads[p];
      }
    }
    for (size_t p = 0; p < expected.size(); ++p)
      EXPECT_EQ(found[p].to_vector<float>(), expected[p].to_vector<float>()) << p;
  }
}

TEST(PrecisionInBodies, TrainsLikeTheWholeBatch) {
  constexpr int kSteps = 20;
  const struct {
    compiler::Precision policy;
    double all;  // relative to the loss of every step
  } cases[] = {{compiler::Precision::bf16_mixed, 2e-3},
               {compiler::Precision::f16_mixed, 5e-4},
               {compiler::Precision::fp8_mixed, 0.01}};
  for (const auto& c : cases) {
    const std::vector<float> whole = Training(1).losses(with_policy(c.policy), kSteps);
    EXPECT_LT(whole.back(), 0.8F * whole.front());
    for (int64_t parts : {2, 4}) {
      const std::vector<float> cut = Training(parts).losses(with_policy(c.policy), kSteps);
      for (size_t i = 0; i < cut.size(); ++i)
        EXPECT_NEAR(cut[i], whole[i], c.all * whole[i])
            << compiler::precision_name(c.policy) << ", " << parts << " parts, step " << i;
    }
  }
}

TEST(PrecisionInBodies, OptimisingPassesKeepTheBits) {
  for (compiler::Precision policy :
       {compiler::Precision::f16_mixed, compiler::Precision::fp8_mixed})
    expect_passes_keep_the_bits(policy, [](const compiler::PipelineOptions& options) {
      return Training(2).losses(options, 4);
    });
}

TEST(PrecisionInBodies, RunsAsItsGraphIsInterpreted) {
  for (compiler::Precision policy :
       {compiler::Precision::f16_mixed, compiler::Precision::fp8_mixed}) {
    Training training(2);
    auto step = training.step(with_policy(policy));
    const std::vector<Tensor> inputs = training.inputs();
    runtime::Executable& program = step.function().executable(inputs);
    program.run(inputs);  // the scales are no longer those of the start
    expect_runs_as_interpreted(program, inputs);
  }
}

TEST(PrecisionInBodies, BodiesInBodies) {
  const auto build = [](const compiler::PipelineOptions& options, Tensor w) {
    return runtime::compile(
        [w](const Tensor& x, const Tensor& n) {
          return repeat(n, {x}, [&](const Tensor& x_i) {
            const std::vector<Tensor> inner = repeat(n, {x}, [&](const Tensor& x_j) {
              return grad(sum(square(matmul(x_i * x_j, w))), {w})[0];
            });
            return std::vector<Tensor>{inner[0], grad(sum(matmul(x_i, w)), {w})[0]};
          });
        },
        options);
  };
  const Tensor w = tensor({{0.5, -1}, {2, 0.25}}).require_grad();
  const Tensor x = tensor({{{1, 2}, {0.5, -1}}, {{-1, 0.5}, {0.25, 1}}}), two = count_of(2);
  auto exact = build({}, w), half = build(f16_options({.initial = 256}), w),
       eighth = build(fp8_options(), w);
  const std::vector<Tensor> expected = exact(x, two), found = half(x, two);
  eighth(x, two);  // sets the scales
  const std::vector<Tensor> coarse = eighth(x, two);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LT(relative_error(found[i], expected[i]), 1e-3) << i;
    EXPECT_LT(relative_error(coarse[i], expected[i]), 0.1) << i;
  }
}

// ---- what is the same in all parts ----

TEST(PrecisionInBodies, ParametersAreCastOnceAStep) {
  for (compiler::Precision policy :
       {compiler::Precision::bf16_mixed, compiler::Precision::f16_mixed}) {
    const graph::Graph graph = Training(2).program(with_policy(policy));
    const graph::Graph& body = body_of(graph);
    int given = 0;
    for (const graph::GraphInput& input : body.inputs)
      given += body.type(input.value).dtype == compiler::low_dtype(policy) ? 1 : 0;
    EXPECT_GE(given, 2 * 4 * 2 + 1);  // matrices and biases of the layers, and the table
    for (const graph::Node& node : body.nodes) {
      if (node.op != &cast_op) continue;
      for (const graph::GraphInput& input : body.inputs)
        EXPECT_NE(node.inputs[0], input.value) << input.name << " is cast in every part";
    }
    int copies = 0;
    for (const graph::StateSlot& state : graph.states) copies += state.copy_of >= 0 ? 1 : 0;
    EXPECT_EQ(copies, given);
  }
}

// ---- overrides ----

TEST(PrecisionInBodies, OverridesReachInside) {
  const struct {
    compiler::Precision policy;
    DType low;
  } cases[] = {{compiler::Precision::bf16_mixed, DType::bf16},
               {compiler::Precision::f16_mixed, DType::f16},
               {compiler::Precision::fp8_mixed, DType::f8e4m3}};
  for (const auto& c : cases) {
    const graph::Graph graph =
        Training(2).program(with_policy(c.policy, {{"h.*.attn", compiler::Precision::f32}}));
    const graph::Graph& body = body_of(graph);
    int products = 0;
    for (const graph::Node& node : body.nodes) {
      if (node.op != &matmul_op && node.op != &linear_op) continue;
      const bool in_attention = compiler::matches_pattern("h.?.attn*", node.scope);
      const DType dtype = body.type(node.inputs[1]).dtype;
      EXPECT_EQ(dtype, in_attention ? DType::f32 : c.low) << node.scope;
      products += in_attention ? 1 : 0;
    }
    EXPECT_EQ(products, 2 * 2 * 3) << compiler::precision_name(c.policy);
  }
  const std::string error = error_of([&] {
    Training(2).program(
        with_policy(compiler::Precision::f16_mixed, {{"h.0.atn", compiler::Precision::f32}}));
  });
  EXPECT_NE(error.find("near names: h.0.attn"), std::string::npos) << error;
}

TEST(PrecisionInBodies, AnOverrideAloneBringsItsScale) {
  const compiler::PipelineOptions head =
      with_policy(compiler::Precision::f32, {{"head", compiler::Precision::f16_mixed}});
  const graph::Graph graph = Training(2).program(head);
  EXPECT_TRUE(state_named(graph, "loss_scale").is_written());
  const std::vector<float> whole = Training(1).losses(head, 5), cut = Training(2).losses(head, 5);
  for (size_t i = 0; i < cut.size(); ++i) EXPECT_NEAR(cut[i], whole[i], 1e-3 * whole[i]);
}

}  // namespace
}  // namespace brrr
