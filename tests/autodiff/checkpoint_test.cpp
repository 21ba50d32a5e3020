// checkpoint(fn): the same numbers, fewer bytes.
#include "brrr/autodiff/checkpoint.h"

#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/device/ledger.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/random/dropout.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/runtime/compile.h"
#include "support/error_of.h"

namespace brrr {
namespace {

// A block of two products with dropout between, and what it takes.
struct Block {
  Tensor up, down;
  Block(Random& random, int64_t width)
      : up(normal({width, 4 * width}, random.stream("init"), {.std = 0.1})),
        down(normal({4 * width, width}, random.stream("init"), {.std = 0.1})) {
    up.require_grad();
    down.require_grad();
  }
  Tensor operator()(const Tensor& x, const KeyArg& key) const {
    return x + matmul(dropout(gelu(matmul(x, up)), 0.3, key), down);
  }
};

struct Model {
  Random random{7};
  std::vector<std::unique_ptr<Block>> blocks;
  Tensor x;
  Model() {
    for (int i = 0; i < 3; ++i) blocks.push_back(std::make_unique<Block>(random, 16));
    x = normal({32, 16}, random.stream("data"));
    x.require_grad();
  }
  std::vector<Tensor> leaves() const {
    std::vector<Tensor> all{x};
    for (const auto& block : blocks) {
      all.push_back(block->up);
      all.push_back(block->down);
    }
    return all;
  }
  Tensor loss(bool with_checkpoints) {
    Tensor h = x;
    for (const auto& block : blocks) {
      const auto run = [&block = *block, this](const Tensor& in) {
        return block(in, random.stream("dropout"));
      };
      h = with_checkpoints ? checkpoint(run, h) : run(h);
    }
    return mean(square(h));
  }
};

void expect_equal(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i].to_vector<float>(), expected[i].to_vector<float>()) << "gradient " << i;
}

// Captured weights included; the dropout masks of the second run are those of the first.
TEST(Checkpoint, GradientsHaveTheSameBits) {
  Model plain, checkpointed;
  const Tensor expected = plain.loss(false), found = checkpointed.loss(true);
  EXPECT_EQ(found.item<float>(), expected.item<float>());
  expect_equal(grad(found, checkpointed.leaves()), grad(expected, plain.leaves()));
  // The second run drew nothing new.
  EXPECT_EQ(checkpointed.random.stream("dropout").draws(), 3U);
}

TEST(Checkpoint, BackwardDeliversToCapturedLeaves) {
  Model plain, checkpointed;
  plain.loss(false).backward();
  checkpointed.loss(true).backward();
  for (size_t i = 0; i < plain.leaves().size(); ++i)
    EXPECT_EQ(checkpointed.leaves()[i].grad().to_vector<float>(),
              plain.leaves()[i].grad().to_vector<float>());
}

// Between the passes a checkpointed block holds what it was given, and a plain one all that its rules
// read: gelu's operand, dropout's result, each [32, 64].
TEST(Checkpoint, KeepsInputsOnly) {
  Model plain, checkpointed;
  const auto live_after = [](Model& model, bool with) {
    const int64_t before = ledger().live().value();
    const Tensor loss = model.loss(with);
    return ledger().live().value() - before;
  };
  const int64_t all = live_after(plain, false), inputs = live_after(checkpointed, true);
  constexpr int64_t kInner = 3 * 2 * 32 * 64 * 4;
  EXPECT_LE(inputs + kInner, all);
  // Three block outputs, the square's operand being the last of them, and the loss; keys are small.
  EXPECT_LE(inputs, 3 * 32 * 16 * 4 + 256);
}

TEST(Checkpoint, SeveralInputsAndResults) {
  const Tensor a = tensor({1.0, 2.0}), b = tensor({3.0, 5.0});
  a.require_grad();
  b.require_grad();
  const auto fn = [](const Tensor& x, const Tensor& y) { return Tensors{x * y, exp(x) + y}; };
  const auto loss_of = [](const Tensors& both) { return sum(both[0] * both[1]); };
  const std::vector<Tensor> expected = grad(loss_of(fn(a, b)), {a, b});
  expect_equal(grad(loss_of(checkpoint(fn, a, b)), {a, b}), expected);
  // One result unused, one tensor given twice.
  expect_equal(grad(sum(checkpoint(fn, a, a)[0]), {a}), grad(sum(a * a), {a}));
}

TEST(Checkpoint, Nested) {
  const Tensor x = tensor({0.3, 0.7}), w = tensor({2.0, 3.0});
  x.require_grad();
  w.require_grad();
  Random first(5), second(5);
  const auto inner = [&](Random& random) {
    return [&](const Tensor& h) { return dropout(exp(h) * w, 0.5, random.stream("dropout")); };
  };
  const Tensor plain = sum(sin(inner(first)(x)) * x);
  const Tensor nested =
      sum(checkpoint([&](const Tensor& h) { return sin(checkpoint(inner(second), h)) * h; }, x));
  EXPECT_EQ(nested.item<float>(), plain.item<float>());
  expect_equal(grad(nested, {x, w}), grad(plain, {x, w}));
}

TEST(Checkpoint, GradientsOfGradients) {
  const Tensor x = tensor({0.3, 0.7});
  x.require_grad();
  const auto cube = [](const Tensor& h) { return h * h * h; };
  const Tensor first = grad(sum(checkpoint(cube, x)), {x}, {.create_graph = true})[0];
  const std::vector<float> second = grad(sum(first), {x})[0].to_vector<float>();
  EXPECT_NEAR(second[0], 6 * 0.3, 1e-6);
  EXPECT_NEAR(second[1], 6 * 0.7, 1e-6);
}

TEST(Checkpoint, RefusesAFunctionThatDrawsAnew) {
  const Tensor x = tensor({1.0, 2.0});
  x.require_grad();
  Random random(1);
  int calls = 0;
  const Tensor y = checkpoint(
      [&](const Tensor& h) {
        return dropout(h * 2.0, 0.5, random.stream(calls++ == 0 ? "one" : "other"));
      },
      x);
  EXPECT_NE(error_of([&] { sum(y).backward(); }).find("draws other random numbers"),
            std::string::npos);
}

TEST(Checkpoint, WithoutGradientsItIsACall) {
  const Tensor x = tensor({1.0, 2.0});
  EXPECT_FALSE(checkpoint([](const Tensor& h) { return h * 2.0; }, x).requires_grad());
}

// Compiled: keys are inputs, blocks are segments, and the pass keeps nothing inside them.
std::vector<std::vector<float>> compiled_step(Model& model, bool with_checkpoints,
                                              const compiler::RematOptions& remat,
                                              int64_t* arena_bytes) {
  const Tensor key = key_tensor({.seed = 3});
  auto step = runtime::compile(
      [&](const Tensor& x, const Tensor& dropout_key) {
        Tensor h = x;
        for (const auto& block : model.blocks) {
          const auto run = [&](const Tensor& in) { return (*block)(in, dropout_key); };
          h = with_checkpoints ? checkpoint(run, h) : run(h);
        }
        const Tensor loss = mean(square(h));
        std::vector<Tensor> weights = model.leaves();
        weights.erase(weights.begin());
        std::vector<Tensor> results = grad(loss, weights);
        results.push_back(loss);
        return results;
      },
      {.remat = remat});
  const Tensor x = model.x.detach();
  std::vector<std::vector<float>> values;
  for (const Tensor& result : step(x, key)) values.push_back(result.to_vector<float>());
  const Tensor inputs[] = {x, key};
  *arena_bytes = step.function().executable(inputs).plan().arena_bytes;
  return values;
}

TEST(Checkpoint, CompiledHasTheSameBitsInFewerBytes) {
  Model model;
  int64_t all = 0, marked = 0, ignored = 0, layers = 0;
  const auto expected = compiled_step(model, false, {.policy = compiler::RematPolicy::none}, &all);
  EXPECT_EQ(compiled_step(model, true, {}, &marked), expected);
  EXPECT_EQ(compiled_step(model, true, {.policy = compiler::RematPolicy::none}, &ignored),
            expected);
  EXPECT_EQ(compiled_step(model, true, {.policy = compiler::RematPolicy::full}, &layers), expected);
  EXPECT_EQ(ignored, all);
  EXPECT_LE(marked, all - 2 * 32 * 64 * 4);
  EXPECT_LE(layers, all - 2 * 32 * 64 * 4);
}

// s is written while the forward part runs; the second run of exp(x + s) must see it as it was.
TEST(Checkpoint, CompiledSeesStatesAsTheyWere) {
  const auto run = [](const compiler::RematOptions& remat) {
    const Tensor s = full({8}, 0.5);
    auto step = runtime::compile(
        [&](const Tensor& x) -> std::vector<Tensor> {
          x.require_grad();
          const Tensor h = checkpoint([&](const Tensor& given) { return sin(exp(given + s)); }, x);
          s.copy_from(s + 1.0);
          const Tensor loss = sum(square(h));
          return {loss, grad(loss, {x})[0]};
        },
        {.remat = remat});
    std::vector<std::vector<float>> values;
    for (int i = 0; i < 3; ++i) {
      for (const Tensor& result : step(full({8}, 0.3))) values.push_back(result.to_vector<float>());
    }
    values.push_back(s.to_vector<float>());
    return values;
  };
  const auto expected = run({.policy = compiler::RematPolicy::none});
  EXPECT_EQ(expected.back(), std::vector<float>(8, 3.5F));
  EXPECT_EQ(run({}), expected);
  EXPECT_EQ(run({.policy = compiler::RematPolicy::full}), expected);
}

}  // namespace
}  // namespace brrr
