// Scales of low precision over micro-batches: one loss scale, one verdict over all gradients and one largest magnitude
// an operand, in a step of any number of parts.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "brrr/autodiff/grad.h"
#include "brrr/ops/control/repeat.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/views.h"
#include "brrr/optim/optimizer.h"
#include "brrr/runtime/compile.h"
#include "compiler/low_precision.h"

namespace brrr {
namespace {

// ---- the loss scale ----

// loss = sum((x w) * y): d loss / d (x w) = y, any size of gradient in any part.
struct Product {
  Tensor w = tensor({{0.5, -1}, {2, 0.25}});
  AdamW optimizer{{{"w", w.require_grad()}}, AdamWOptions{}};
  Tensor x = tensor({{1, 2}, {3, 4}, {-1, 0.5}, {0.25, 8}});
  bool in_parts;

  explicit Product(bool repeats) : in_parts(repeats) {}

  // y is f32[4, 2]; in two parts of two rows, or whole.
  auto step(const compiler::PipelineOptions& options) {
    return runtime::compile(
        [this](const Tensor& rows, const Tensor& y, const Tensor& n) {
          const auto part = [&](const Tensor& rows_i, const Tensor& y_i) {
            const Tensor loss = sum(matmul(rows_i, w) * y_i);
            return std::vector<Tensor>{grad(loss, {w})[0], loss.detach()};
          };
          const std::vector<Tensor> sums =
              in_parts ? repeat(n, {reshape(rows, {2, 2, 2}), reshape(y, {2, 2, 2})}, part)
                       : part(rows, y);
          optimizer.update({sums[0]}, 0.1);
          return sums[1];
        },
        options);
  }
  std::vector<std::vector<double>> contents() const {
    std::vector<std::vector<double>> all{w.to_vector<double>()};
    for (const NamedTensor& state : optimizer.states())
      all.push_back(state.tensor.to_vector<double>());
    return all;
  }
};

struct ScaleRun {
  std::vector<double> scales, good_steps;
  std::vector<std::vector<std::vector<double>>> contents;  // behind every step
};
ScaleRun run_steps(bool in_parts, const Tensor& y, const compiler::LossScaleOptions& scaling,
                   int steps) {
  Product product(in_parts);
  auto step = product.step(f16_options(scaling));
  const Tensor two = count_of(2), inputs[] = {product.x, y, two};
  const graph::Graph& graph = step.function().executable(inputs).graph();
  ScaleRun run;
  for (int i = 0; i < steps; ++i) {
    step(product.x, y, two);
    run.scales.push_back(state_named(graph, "loss_scale").tensor.item<double>());
    run.good_steps.push_back(state_named(graph, "loss_scale.good_steps").tensor.item<double>());
    run.contents.push_back(product.contents());
  }
  return run;
}

// 1024 * 128 and 512 * 128 are infinite in f16, 256 * 128 is not; the other part has small gradients. In the last
// case the infinities of the parts have two signs, and their sum is NaN.
TEST(LossScaleInBodies, AnOverflowInOnePartSkipsTheStepAndHalvesTheScaleOnce) {
  const std::vector<std::vector<double>> before = Product(true).contents();
  const double sizes[][2] = {{1, 128}, {128, 1}, {128, -128}};
  for (const auto& size : sizes) {
    const Tensor y = concat({full({2, 2}, size[0]), full({2, 2}, size[1])}, 0);
    const compiler::LossScaleOptions scaling{.initial = 1024};
    const ScaleRun cut = run_steps(true, y, scaling, 4), whole = run_steps(false, y, scaling, 4);
    EXPECT_EQ(cut.scales, (std::vector<double>{512, 256, 256, 256}));
    EXPECT_EQ(cut.good_steps, (std::vector<double>{0, 0, 1, 2}));
    EXPECT_EQ(cut.contents[0], before);  // parameters, moments and the count of steps
    EXPECT_EQ(cut.contents[1], before);
    EXPECT_NE(cut.contents[2], before);
    EXPECT_EQ(cut.scales, whole.scales);
    EXPECT_EQ(cut.good_steps, whole.good_steps);
    EXPECT_EQ(cut.contents, whole.contents);  // small numbers: no sum is rounded
  }
}

TEST(LossScaleInBodies, GrowsByStepsAndNotByParts) {
  const compiler::LossScaleOptions scaling{.initial = 1024, .growth_interval = 3, .largest = 4096};
  const ScaleRun cut = run_steps(true, full({4, 2}, 1e-4), scaling, 8);
  EXPECT_EQ(cut.scales, (std::vector<double>{1024, 1024, 2048, 2048, 2048, 4096, 4096, 4096}));
  EXPECT_EQ(cut.scales, run_steps(false, full({4, 2}, 1e-4), scaling, 8).scales);
}

TEST(LossScaleInBodies, KeepsGradientsThatF16WouldLose) {
  const Tensor y =
      full({4, 2}, 1e-8);  // the smallest number of f16 is 6e-8, half of it rounds to 0
  const auto gradient = [&](compiler::LossScaling kind) {
    const Tensor w = tensor({{0.5, -1}, {2, 0.25}}).require_grad();
    auto f = runtime::compile(
        [&](const Tensor& x, const Tensor& n) {
          return repeat(n, {x, reshape(y, {2, 2, 2})}, [&](const Tensor& x_i, const Tensor& y_i) {
            return grad(sum(matmul(x_i, w) * y_i), {w})[0];
          })[0];
        },
        f16_options({.kind = kind}));
    return f(ones({2, 2, 2}), count_of(2)).to_vector<float>();
  };
  EXPECT_EQ(gradient(compiler::LossScaling::none), (std::vector<float>(4, 0)));
  for (float each : gradient(compiler::LossScaling::automatic))
    EXPECT_NEAR(each, 4e-8, 1e-3 * 4e-8);
}

// A body that does more with gradients than add them up sees them at their own size, and an overflow in it is
// not lost, although what it returns is finite.
struct Clipped {
  Tensor w = tensor({{0.5, -1}, {2, 0.25}}).require_grad();
  auto step(const compiler::PipelineOptions& options) {
    return runtime::compile(
        [this](const Tensor& x, const Tensor& y, const Tensor& n) {
          const Tensor sum_of_parts = repeat(n, {x, y}, [&](const Tensor& x_i, const Tensor& y_i) {
            const Tensor g = grad(sum(matmul(x_i, w) * y_i), {w})[0];
            return minimum(maximum(g, -3.0), 3.0);
          })[0];
          NoGrad update;
          w.copy_from(w - sum_of_parts * 0.125);
          return sum_of_parts;
        },
        options);
  }
};

TEST(LossScaleInBodies, BodiesMayClipTheirGradients) {
  const Tensor x = tensor({{{1, 2}, {3, 4}}, {{-1, 0.5}, {0.25, 8}}}), y = full({2, 2, 2}, 0.5);
  Clipped exact, low;
  auto expected = exact.step({}), found = low.step(f16_options({.initial = 1024}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(found(x, y, count_of(2)).to_vector<float>(),
              expected(x, y, count_of(2)).to_vector<float>());
    EXPECT_EQ(low.w.to_vector<float>(), exact.w.to_vector<float>());
  }
  Clipped overflowing;
  auto step = overflowing.step(f16_options({.initial = 1024}));
  const std::vector<float> before = overflowing.w.to_vector<float>();
  const Tensor large = concat({full({1, 2, 2}, 128.0), full({1, 2, 2}, 0.5)}, 0);
  const Tensor two = count_of(2), inputs[] = {x, large, two};
  EXPECT_TRUE(std::isfinite(step(x, large, two).to_vector<float>()[0]));
  EXPECT_EQ(overflowing.w.to_vector<float>(), before);
  const graph::Graph& graph = step.function().executable(inputs).graph();
  EXPECT_EQ(state_named(graph, "loss_scale").tensor.item<double>(), 512);
  step(x, large, two), step(x, large, two);
  EXPECT_NE(overflowing.w.to_vector<float>(), before);
  EXPECT_EQ(state_named(graph, "loss_scale").tensor.item<double>(), 256);
}

// Updates inside the body: an overflow in any part takes back those of all.
TEST(LossScaleInBodies, UpdatesInsideABodyAreTakenBackTogether) {
  const Tensor w = tensor({{0.5, -1}, {2, 0.25}}).require_grad();
  auto step = runtime::compile(
      [&](const Tensor& x, const Tensor& y, const Tensor& n) {
        return repeat(n, {x, y}, [&](const Tensor& x_i, const Tensor& y_i) {
          const Tensor loss = sum(matmul(x_i, w) * y_i), g = grad(loss, {w})[0];
          NoGrad update;
          w.copy_from(w - g * 0.125);
          return loss.detach();
        })[0];
      },
      f16_options({.initial = 1024}));
  const Tensor x = ones({2, 2, 2}),
               large = concat({full({1, 2, 2}, 0.5), full({1, 2, 2}, 128.0)}, 0);
  const std::vector<float> before = w.to_vector<float>();
  step(x, large, count_of(2));
  EXPECT_EQ(w.to_vector<float>(), before);
  step(x, large, count_of(1));  // the large part does not run
  std::vector<float> expected = before;
  for (float& each : expected) each -= 0.125F;  // two rows of 0.5
  EXPECT_EQ(w.to_vector<float>(), expected);
}

// ---- 8-bit operands ----

TEST(Fp8InBodies, TheLargestMagnitudeOfAStepIsThatOverItsParts) {
  Product cut(true), whole(false);
  auto step = cut.step(fp8_options()), plain = whole.step(fp8_options());
  const Tensor two = count_of(2), y = concat({full({2, 2}, -3.0), full({2, 2}, 0.5)}, 0);
  const Tensor inputs[] = {cut.x, y, two};
  const graph::Graph &graph = step.function().executable(inputs).graph(),
                     &expected = plain.function().executable(inputs).graph();
  const auto expect_states = [&](const std::string& when) {
    for (const char* name : {"fp8.e4m3.amax", "fp8.e4m3.scale", "fp8.e5m2.amax", "fp8.e5m2.scale"})
      EXPECT_EQ(state_named(graph, name).tensor.to_vector<float>(),
                state_named(expected, name).tensor.to_vector<float>())
          << name << " " << when;
  };
  step(cut.x, y, two), plain(cut.x, y, two);
  EXPECT_EQ(state_named(graph, "fp8.e4m3.amax").tensor.to_vector<float>(),
            (std::vector<float>{8, 0, 0, 2, 0, 0}));  // x and w; one step, not two
  EXPECT_EQ(state_named(graph, "fp8.e5m2.amax").tensor.to_vector<float>(),
            (std::vector<float>{3, 0, 0}));
  expect_states("behind a step");
  for (double size : {2.0, 0.5, 0.5}) {  // the 8 leaves the window, the 16 does not
    step(cut.x * size, y, two), plain(cut.x * size, y, two);
  }
  EXPECT_EQ(state_named(graph, "fp8.e4m3.amax").tensor.to_vector<float>()[2], 16);
  EXPECT_EQ(state_named(graph, "fp8.e4m3.scale").tensor.to_vector<float>()[0], 448 / 16.0F);
}

TEST(Fp8InBodies, AMagnitudeThatIsNoNumberCountsAsNone) {
  for (double odd :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (int64_t row : {0, 3}) {  // in the first part, and in the last
      Product product(true);
      auto step = product.step(fp8_options());
      const Tensor two = count_of(2), y = ones({4, 2}), inputs[] = {product.x, y, two};
      const Tensor amax =
          state_named(step.function().executable(inputs).graph(), "fp8.e4m3.amax").tensor;
      const Tensor x = clone(product.x);
      x[row].fill(odd);
      step(x, y, two);
      EXPECT_EQ(amax.to_vector<float>()[0], 0) << odd << ", row " << row;
    }
  }
}

// Operands outside the body and in two bodies have rows of one state.
TEST(Fp8InBodies, OperandsOutsideAndInTwoBodiesShareTheStates) {
  const Tensor w = full({2, 2}, 2.0), v = full({2, 2}, 3.0), u = full({2, 2}, 5.0);
  auto f = runtime::compile(
      [&](const Tensor& x, const Tensor& n) {
        const Tensor before = matmul(x[0], w);
        const Tensor first =
            repeat(n, {x}, [&](const Tensor& x_i) { return matmul(x_i * 7.0, v); })[0];
        const Tensor second = repeat(n, {x}, [&](const Tensor& x_i) { return matmul(x_i, u); })[0];
        return Tensors{before, first, second, matmul(x[0] * 11.0, w)};
      },
      fp8_options());
  const Tensor x = ones({3, 2, 2}), three = count_of(3), inputs[] = {x, three};
  const auto run = [&] { return f.function().executable(inputs).run(inputs); };
  run();
  const graph::Graph& graph = f.function().executable(inputs).graph();
  const std::vector<float> amax = state_named(graph, "fp8.e4m3.amax").tensor.to_vector<float>();
  std::vector<float> newest;
  for (size_t i = 0; i < amax.size(); i += 3) newest.push_back(amax[i]);
  EXPECT_EQ(newest, (std::vector<float>{1, 2, 7, 3, 1, 5, 11}));  // w once for both its products
  for (const compiler::Kernel& kernel : f.function().executable(inputs).kernels().kernels) {
    if (!kernel.body) continue;
    for (const compiler::OperandRef& operand : kernel.inputs)  // row 2 begins at 8 bytes
      EXPECT_EQ(storage_bytes(operand.dtype, operand.layout.offset) % 16, 0);
  }
  const Tensors results = run();  // each with the scale that fits it: nothing is rounded
  const double expected[] = {4, 3 * 42, 3 * 10, 44};
  for (int i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(results[i].to_vector<float>()[0], expected[i]) << i;
}

}  // namespace
}  // namespace brrr
