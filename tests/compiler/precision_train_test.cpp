// Training in mixed precision: losses near those of f32, copies in step with their masters, the loss scale
// and the scales of 8-bit operands at work.
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/autodiff/grad.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/optim/optimizer.h"
#include "brrr/runtime/compile.h"
#include "compiler/low_precision.h"
#include "compiler/small_gpt.h"
#include "support/error_of.h"
#include "support/square_tokens.h"

namespace brrr {
namespace {

struct Training : SmallGpt {
  auto compiled(const compiler::PipelineOptions& options) {
    return runtime::compile(
        [this](const Tensor& tokens, const Tensor& targets) {
          const Tensor loss = model.loss(tokens, targets);
          update(grad(loss, optimizer.parameters()));
          return loss.detach();
        },
        options);
  }
  std::vector<float> losses(const compiler::PipelineOptions& options, int steps) {
    auto step = compiled(options);
    const SquareTokens batch({2, 16});
    return losses_of(step, steps, batch.tokens, batch.targets);
  }
};

// 8 bits of mantissa in bf16, 11 in f16, 4 in e4m3: the noise of the losses goes with them.
TEST(MixedPrecision, TrainsLikeF32) {
  const std::vector<float> f32 = Training().losses({}, 50);
  ASSERT_LT(f32.back(), 0.5F * f32.front());
  const struct {
    compiler::Precision policy;
    double first, all;  // relative to the loss of the first step, and of every step
  } cases[] = {{compiler::Precision::bf16_mixed, 2e-4, 0.01},
               {compiler::Precision::f16_mixed, 2e-5, 0.005},
               {compiler::Precision::fp8_mixed, 1e-3, 0.15}};
  for (const auto& c : cases) {
    const std::vector<float> low = Training().losses(with_policy(c.policy), 50);
    EXPECT_NE(low, f32) << compiler::precision_name(c.policy);
    EXPECT_NEAR(low[0], f32[0], c.first * f32[0]) << compiler::precision_name(c.policy);
    for (size_t i = 0; i < f32.size(); ++i)
      EXPECT_NEAR(low[i], f32[i], c.all * f32[i])
          << compiler::precision_name(c.policy) << ", step " << i;
  }
}

TEST(MixedPrecision, OptimisingPassesKeepTheBits) {
  for (compiler::Precision policy :
       {compiler::Precision::bf16_mixed, compiler::Precision::f16_mixed,
        compiler::Precision::fp8_mixed})
    expect_passes_keep_the_bits(policy, [](const compiler::PipelineOptions& options) {
      return Training().losses(options, 5);
    });
}

TEST(MixedPrecision, RunsAsItsGraphIsInterpreted) {
  Training training;
  auto step = training.compiled(with_policy(compiler::Precision::bf16_mixed));
  const SquareTokens batch({2, 16});
  const Tensor inputs[] = {batch.tokens, batch.targets};
  expect_runs_as_interpreted(step.function().executable(inputs), inputs);
}

// ---- copies ----

void expect_copies_in_step(const graph::Graph& graph) {
  int copies = 0;
  for (const graph::StateSlot& state : graph.states) {
    if (state.copy_of < 0) continue;
    ++copies;
    const Tensor& master = graph.states[static_cast<size_t>(state.copy_of)].tensor;
    EXPECT_EQ(state.tensor.to_vector<float>(),
              cast(master, state.tensor.dtype()).to_vector<float>())
        << state.name;
  }
  EXPECT_GT(copies, 0);
}

TEST(MixedPrecision, CopiesAreTheirMastersRounded) {
  Training training;
  auto step = training.compiled(with_policy(compiler::Precision::bf16_mixed));
  const SquareTokens small({1, 8}), large({2, 16});
  const Tensor inputs[] = {small.tokens, small.targets};
  for (int i = 0; i < 3; ++i) {  // two programs write the same parameters by turns
    step(small.tokens, small.targets);
    step(large.tokens, large.targets);
    expect_copies_in_step(step.function().executable(inputs).graph());
  }
  EXPECT_EQ(step.function().programs(), 2);
}

TEST(MixedPrecision, WritesToAMasterAreSeen) {
  const Tensor w = tensor({{1, 2}, {3, 4}}), x = tensor({{1, 0}, {0, 1}});
  auto f = runtime::compile([&](const Tensor& in) { return matmul(in, w); },
                            with_policy(compiler::Precision::bf16_mixed));
  EXPECT_EQ(f(x).to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  w.fill(9);
  EXPECT_EQ(f(x).to_vector<float>(), (std::vector<float>{9, 9, 9, 9}));
}

TEST(MixedPrecision, CopiesAreInTheLedger) {
  const Tensor w = zeros({64, 64});
  w.set_category(Category::parameter);
  const Bytes before = ledger().live(Category::parameter);
  auto f = runtime::compile([&](const Tensor& in) { return matmul(in, w); },
                            with_policy(compiler::Precision::bf16_mixed));
  f(ones({1, 64}));
  EXPECT_EQ((ledger().live(Category::parameter) - before).value(), 64 * 64 * 2);
}

// ---- the loss scale ----

// d loss / d w = size * x^T 1: any size of gradient, through an f16 product.
struct Product {
  Tensor w = tensor({{0.5, -1}, {2, 0.25}});
  double size;
  AdamW optimizer;

  explicit Product(double gradient_size)
      : size(gradient_size), optimizer({{"w", w.require_grad()}}, AdamWOptions{}) {}

  auto gradient(const compiler::PipelineOptions& options) {
    return runtime::compile(
        [this](const Tensor& x) { return grad(sum(matmul(x, w)) * size, {w})[0]; }, options);
  }
  auto step(const compiler::PipelineOptions& options) {
    return runtime::compile(
        [this](const Tensor& x) {
          const Tensor loss = sum(matmul(x, w)) * size;
          optimizer.update(grad(loss, {w}), 0.1);
          return loss.detach();
        },
        options);
  }
};

TEST(LossScale, KeepsGradientsThatF16WouldLose) {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  constexpr double kSize = 1e-8;  // the smallest number of f16 is 6e-8, half of it rounds to 0
  const std::vector<float> none =
      Product(kSize)
          .gradient(f16_options({.kind = compiler::LossScaling::none}))(x)
          .to_vector<float>();
  EXPECT_EQ(none, (std::vector<float>{0, 0, 0, 0}));
  for (compiler::LossScaling kind : {compiler::LossScaling::automatic, compiler::LossScaling::fixed,
                                     compiler::LossScaling::dynamic}) {
    const std::vector<float> scaled =
        Product(kSize).gradient(f16_options({.kind = kind}))(x).to_vector<float>();
    const double expected[] = {4e-8, 4e-8, 6e-8, 6e-8};  // sums of the columns of x, times 1e-8
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(scaled[i], expected[i], 1e-3 * expected[i]);
  }
}

std::vector<std::vector<double>> contents(const Product& product) {
  std::vector<std::vector<double>> all{product.w.to_vector<double>()};
  for (const NamedTensor& state : product.optimizer.states())
    all.push_back(state.tensor.to_vector<double>());
  return all;
}

TEST(LossScale, AnOverflowSkipsTheUpdateAndHalvesTheScale) {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  const Tensor inputs[] = {x};
  Product product(
      8);  // 65536 * 8 and 32768 * 8 ... are infinite in f16; 8192 * 8 is too, 4096 * 8 not
  auto step = product.step(f16_options());
  const graph::Graph& graph = step.function().executable(inputs).graph();
  const Tensor scale = state_named(graph, "loss_scale").tensor;
  const std::vector<std::vector<double>> before = contents(product);
  for (double expected : {32768.0, 16384.0, 8192.0, 4096.0}) {
    EXPECT_EQ(step(x).item<float>(), 8 * (0.5F + 4 - 1 + 0.5F + 1.5F + 8 - 3 + 1));
    EXPECT_EQ(scale.item<double>(), expected);
    EXPECT_EQ(contents(product), before);  // parameters, moments and the count of steps
  }
  step(x);
  EXPECT_EQ(scale.item<double>(), 4096);
  EXPECT_NE(contents(product), before);
  EXPECT_EQ(product.optimizer.states()[0].tensor.item<double>(), 1);
}

TEST(LossScale, AFixedScaleSkipsToo) {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  Product product(8);
  auto step = product.step(f16_options({.kind = compiler::LossScaling::fixed, .initial = 65536}));
  const std::vector<std::vector<double>> before = contents(product);
  step(x);
  EXPECT_EQ(contents(product), before);
}

TEST(LossScale, GrowsAfterGoodSteps) {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  const Tensor inputs[] = {x};
  Product product(1e-4);
  auto step = product.step(f16_options({.initial = 1024, .growth_interval = 3, .largest = 4096}));
  const graph::Graph& graph = step.function().executable(inputs).graph();
  const Tensor scale = state_named(graph, "loss_scale").tensor;
  std::vector<double> scales;
  for (int i = 0; i < 10; ++i) {
    step(x);
    scales.push_back(scale.item<double>());
  }
  EXPECT_EQ(scales,
            (std::vector<double>{1024, 1024, 2048, 2048, 2048, 4096, 4096, 4096, 4096, 4096}));
}

TEST(LossScale, IsOneForAllShapes) {
  Product product(8);
  auto step = product.step(f16_options());
  const Tensor one = ones({1, 2}), two = ones({2, 2});
  const Tensor inputs[] = {one};
  step(one);
  step(two);
  EXPECT_EQ(
      state_named(step.function().executable(inputs).graph(), "loss_scale").tensor.item<double>(),
      16384);
}

// The update divides by the scale: with a power of two and no rounding in f16 nothing is left of it.
TEST(LossScale, LeavesNoTrace) {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  Product scaled(1), plain(1);
  auto a = scaled.step(f16_options({.initial = 256}));
  auto b = plain.step(f16_options({.kind = compiler::LossScaling::none}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(a(x).item<float>(), b(x).item<float>());
  EXPECT_EQ(contents(scaled), contents(plain));
}

TEST(LossScale, RefusesGradientsOfGradients) {
  const Tensor w = tensor({{1, 2}, {3, 4}}).require_grad();
  const auto twice = [&](const Tensor& x) {
    const Tensor first = grad(sum(square(matmul(x, w))), {w}, {.create_graph = true})[0];
    return grad(sum(square(first)), {w})[0];
  };
  const Tensor x = ones({2, 2});
  EXPECT_NE(error_of([&] {
              runtime::compile(twice, f16_options())(x);
            }).find("gradients of two backward walks"),
            std::string::npos);
  const std::vector<float> found =
      runtime::compile(twice, with_policy(compiler::Precision::bf16_mixed))(x).to_vector<float>();
  EXPECT_EQ(found, twice(x).to_vector<float>());  // small whole numbers: nothing is rounded
}

// ---- 8-bit operands ----

TEST(Fp8, ScalesComeFromTheLargestMagnitudesOfTheStepsBefore) {
  Product product(1);
  auto step = product.step(fp8_options());
  const Tensor first = tensor({{1, -6}, {3, 4}});
  const Tensor inputs[] = {first};
  const graph::Graph& graph = step.function().executable(inputs).graph();
  const Tensor amax = state_named(graph, "fp8.e4m3.amax").tensor,
               scale = state_named(graph, "fp8.e4m3.scale").tensor;
  EXPECT_EQ(amax.shape(), (Shape{2, 3}));  // x and w; the gradient of w needs x again and no more
  EXPECT_EQ(scale.to_vector<float>(), (std::vector<float>{1, 1}));
  step(first);
  EXPECT_EQ(amax.to_vector<float>(), (std::vector<float>{6, 0, 0, 2, 0, 0}));
  EXPECT_EQ(scale.to_vector<float>(), (std::vector<float>{448 / 6.0F, 224}));
  step(first * 2.0);
  step(first * 0.5);
  step(first * 0.5);  // the 6 has left the window, the 12 has not
  EXPECT_EQ(amax.to_vector<float>()[2], 12);
  EXPECT_EQ(scale.to_vector<float>()[0], 448 / 12.0F);
  const Tensor gradient_amax = state_named(graph, "fp8.e5m2.amax").tensor;
  EXPECT_EQ(gradient_amax.to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(state_named(graph, "fp8.e5m2.scale").tensor.item<float>(), 57344);
}

TEST(Fp8, ProductsAreThoseOfRoundedOperands) {
  Random random(5);
  const Tensor x = normal({4, 16}, random.stream("x")), w = normal({16, 8}, random.stream("w"));
  auto f = runtime::compile([&](const Tensor& in) { return matmul(in, w); },
                            with_policy(compiler::Precision::fp8_mixed));
  f(x);  // sets the scales
  const auto rounded = [](const Tensor& t) {
    const float scale = 448 / max(abs(t)).item<float>();
    return cast(cast(t * scale, DType::f8e4m3), DType::f32) * (1 / scale);
  };
  const std::vector<float> found = f(x).to_vector<float>(),
                           expected = matmul(rounded(x), rounded(w)).to_vector<float>();
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5);
  EXPECT_NE(found, matmul(x, w).to_vector<float>());
}

TEST(Fp8, FormatsByDirectionAndOverridesByName) {
  Training training;
  auto step = training.compiled(
      with_policy(compiler::Precision::fp8_mixed, {{"head", compiler::Precision::bf16_mixed}}));
  const SquareTokens batch({2, 16});
  const Tensor inputs[] = {batch.tokens, batch.targets};
  const graph::Graph& graph = step.function().executable(inputs).graph();
  int products = 0;
  for (const graph::Node& node : graph.nodes) {
    if (node.op->name != "matmul" && node.op->name != "linear") continue;
    const DType a = graph.type(node.inputs[0]).dtype, b = graph.type(node.inputs[1]).dtype;
    if (node.scope == "head") {
      EXPECT_EQ(a, DType::bf16);
    } else if (node.phase == graph::Phase::forward) {
      EXPECT_TRUE(a == DType::f8e4m3 && b == DType::f8e4m3);
    } else {
      EXPECT_TRUE(a == DType::f8e5m2 && b == DType::f8e4m3);  // dy W and dy^T x
    }
    products += node.scope != "head" ? 1 : 0;
  }
  EXPECT_EQ(products, 2 * 4 * 3);
}

}  // namespace
}  // namespace brrr
