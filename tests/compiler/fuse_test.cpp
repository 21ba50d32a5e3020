// What becomes one kernel, and that it gives the bits of its ops one by one.
#include "brrr/compiler/fuse/fuse.h"

#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/compiler/codegen/codegen_cuda.h"
#include "brrr/graph/trace.h"
#include "brrr/ops/attention/attention.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/loss/cross_entropy.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/norm/layer_norm.h"
#include "brrr/ops/norm/softmax.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/compile.h"

namespace brrr {
namespace {

Tensor values(const Shape& shape, uint32_t draw) {
  return normal(shape, RandomKey{.seed = 9, .stream = 2, .draw = draw});
}

// Kernels that do something; numbers from the host are filled in by kernels of their own.
std::vector<std::string> kernel_names(runtime::Executable& program) {
  std::vector<std::string> names;
  for (const compiler::Kernel& kernel : program.kernels().kernels) {
    if (kernel.name != "number") names.push_back(kernel.name);
  }
  return names;
}

// Runs fn eagerly and compiled, expects the same bits, and returns the names of the kernels.
template <typename Fn>
std::vector<std::string> kernels_of(Fn fn, const std::vector<Tensor>& inputs) {
  const auto call = [&](std::span<const Tensor> given) { return fn(given); };
  const Tensors expected = call(inputs);
  runtime::CompiledFunction compiled(call, {});
  const Tensors got = compiled.run(inputs);
  for (int i = 0; i < expected.size(); ++i)
    EXPECT_EQ(got[i].to_vector<float>(), expected[i].to_vector<float>()) << "result " << i;
  return kernel_names(compiled.executable(inputs));
}
using Names = std::vector<std::string>;
using Inputs = std::span<const Tensor>;

TEST(Fuse, AnActivationAndTheResidualFollowTheProduct) {
  const std::vector<Tensor> inputs{values({50, 70}, 1), values({130, 70}, 2), values({130}, 3),
                                   values({50, 130}, 4)};
  const auto fn = [](Inputs x) -> Tensors { return {gelu(linear(x[0], x[1], x[2])) + x[3]}; };
  EXPECT_EQ(kernels_of(fn, inputs), (Names{"linear+gelu+add"}));
}

// A concat of so many operands has more of them than the mask of its streams has bits.
TEST(Fuse, FortyOperandsOfAConcat) {
  std::vector<Tensor> inputs;
  for (uint32_t i = 0; i < 40; ++i) inputs.push_back(values({3}, i));
  const auto fn = [](Inputs x) -> Tensors {
    std::vector<Tensor> parts;
    for (const Tensor& one : x) parts.push_back(exp(one) * 2.0);
    return {concat(parts, 0)};
  };
  EXPECT_GT(kernels_of(fn, inputs).size(), 0U);
}

TEST(Fuse, AProductThatOthersNeedIsStoredToo) {
  const std::vector<Tensor> inputs{values({2, 3, 40, 50}, 1), values({2, 3, 50, 100}, 2)};
  const auto fn = [](Inputs x) -> Tensors {
    const Tensor product = matmul(x[0], x[1]);
    return {tanh(product), product, sum(transpose(product, -1, -2), {-1})};
  };
  EXPECT_EQ(kernels_of(fn, inputs), (Names{"matmul+tanh", "sum"}));
}

TEST(Fuse, SeesThroughReshapes) {
  const std::vector<Tensor> inputs{values({6, 10}, 1), values({10, 20}, 2), values({2, 3, 20}, 3)};
  const auto fn = [](Inputs x) -> Tensors {
    return {reshape(matmul(x[0], x[1]), {2, 3, 20}) + x[2]};
  };
  EXPECT_EQ(kernels_of(fn, inputs), (Names{"matmul+add"}));
}

TEST(Fuse, ANormTakesItsPrologueAndEpilogue) {
  const std::vector<Tensor> inputs{values({30, 64}, 1), values({30, 64}, 2), values({64}, 3),
                                   values({64}, 4)};
  const auto fn = [](Inputs x) -> Tensors {
    const Tensor residual = x[0] + x[1];
    return {silu(layer_norm(residual, x[2], x[3])), residual};
  };
  EXPECT_EQ(kernels_of(fn, inputs), (Names{"add+layer_norm+silu"}));
}

TEST(Fuse, SoftmaxOfScaledScores) {
  const std::vector<Tensor> inputs{values({7, 300}, 1)};
  const auto fn = [](Inputs x) -> Tensors { return {softmax(x[0] * 0.125, -1) * 2.0}; };
  EXPECT_EQ(kernels_of(fn, inputs), (Names{"mul+softmax+mul"}));
}

TEST(Fuse, TheNormOfAGradientIsOnePassOverIt) {
  const std::vector<Tensor> inputs{values({300, 100}, 1)};
  const auto fn = [](Inputs x) -> Tensors { return {sqrt(sum(square(x[0])))}; };
  EXPECT_EQ(kernels_of(fn, inputs), (Names{"square+sum", "sqrt"}));
}

TEST(Fuse, BiasGradientsAreColumnSumsWithAPrologue) {
  for (const Shape& shape : {Shape{40, 30}, Shape{2100, 260}, Shape{5, 7, 33}}) {
    const std::vector<Tensor> inputs{values(shape, 1), values(shape, 2)};
    const auto fn = [&](Inputs x) -> Tensors {
      const Tensor product = x[0] * x[1];
      const Tensor rows = reshape(product, {numel(shape) / shape.back(), shape.back()});
      return {sum(rows, {0}), product};
    };
    EXPECT_EQ(kernels_of(fn, inputs), (Names{"mul+sum"}));
  }
}

TEST(Fuse, ACircleIsNotFused) {
  const std::vector<Tensor> inputs{values({20, 30}, 1), values({30, 40}, 2)};
  const auto fn = [](Inputs x) -> Tensors {
    const Tensor product = matmul(x[0], x[1]);
    return {product - mean(product, {-1}, KeepDims::yes)};  // needs the whole row first
  };
  EXPECT_EQ(kernels_of(fn, inputs), (Names{"matmul", "mean", "sub"}));
}

TEST(Fuse, TwoOperandsFromOneProgramAreNotStreamed) {
  const std::vector<Tensor> inputs{values({20, 30}, 1), values({20, 30}, 2)};
  const auto fn = [](Inputs x) -> Tensors {
    const Tensor a = x[0] + x[1];
    return {a * softmax(a, -1)};
  };
  const Names names = kernels_of(fn, inputs);
  EXPECT_EQ(names, (Names{"add+softmax", "mul"}));
}

TEST(Fuse, LowPrecisionRoundsWhereMemoryWould) {
  std::vector<Tensor> inputs{values({30, 64}, 1), values({30, 64}, 2), values({64}, 3),
                             values({64}, 4)};
  for (Tensor& x : inputs) x = cast(x, DType::bf16);
  const auto fn = [](Inputs x) -> Tensors {
    return {silu(layer_norm(x[0] * x[1], x[2], x[3])), sum(x[0] * x[1], {0})};
  };
  kernels_of(fn, inputs);
}

TEST(Fuse, UpdatesOfAllTensorsAreOneKernelInPlace) {
  const std::vector<Tensor> states{values({300, 100}, 1), values({70}, 2), values({9, 9}, 3)};
  const float* address = states[0].data<float>();
  auto step = runtime::compile([&](const Tensor& rate) {
    for (const Tensor& p : states) p.copy_from(p - square(p) * rate);
  });
  const Tensor rate = full({}, 0.5);
  std::vector<std::vector<float>> expected;
  for (const Tensor& p : states) expected.push_back((p - square(p) * rate).to_vector<float>());
  step(rate);
  for (size_t i = 0; i < states.size(); ++i) {
    EXPECT_EQ(states[i].to_vector<float>(), expected[i]);
  }
  EXPECT_EQ(states[0].data<float>(), address);
  runtime::Executable& program = step.function().executable({{rate}});
  EXPECT_EQ(kernel_names(program), (Names{"square+mul+sub x 3"}));
  EXPECT_EQ(program.plan().arena_bytes, 0);
}

TEST(Fuse, AnUpdateBehindTheProductOfItsGradient) {
  const Tensor weight = values({60, 50}, 1);
  const Tensor x = values({20, 60}, 2), dy = values({20, 50}, 3);
  const std::vector<float> expected = (weight - matmul(transpose(x), dy) * 0.1).to_vector<float>();
  auto step = runtime::compile([&](const Tensor& a, const Tensor& b) {
    weight.copy_from(weight - matmul(transpose(a), b) * 0.1);
  });
  step(x, dy);
  EXPECT_EQ(weight.to_vector<float>(), expected);
  EXPECT_EQ(kernel_names(step.function().executable({{x, dy}})), (Names{"matmul+mul+sub"}));
}

// The gradient of the weight is asked for first, but the old weight is still to be read by then.
TEST(Fuse, AnUpdateWaitsForTheLastReaderOfTheOldWeight) {
  const Tensor weight = values({60, 50}, 1);
  const Tensor x = values({20, 60}, 2), dy = values({20, 50}, 3);
  const std::vector<float> expected = (weight - matmul(transpose(x), dy) * 0.1).to_vector<float>(),
                           expected_dx = matmul(dy, transpose(weight)).to_vector<float>();
  auto step = runtime::compile([&](const Tensor& a, const Tensor& b) {
    const Tensor updated = weight - matmul(transpose(a), b) * 0.1;
    const Tensor dx = matmul(b, transpose(weight));
    weight.copy_from(updated);
    return dx;
  });
  EXPECT_EQ(step(x, dy).to_vector<float>(), expected_dx);
  EXPECT_EQ(weight.to_vector<float>(), expected);
  // A state that could not be written in place would be copied at the end.
  EXPECT_EQ(kernel_names(step.function().executable({{x, dy}})),
            (Names{"matmul", "matmul+mul+sub"}));
}

// As the gradients of a tied embedding: the head's is there first, and its operands are large.
TEST(Fuse, AProductDoesNotHoldLargeOperandsForALateAddend) {
  const std::vector<Tensor> wide{values({500, 40}, 1), values({500, 8}, 2), values({40, 8}, 3)};
  const auto fn = [](Inputs x) -> Tensors {
    const Tensor early = matmul(transpose(exp(x[0])), x[1]);
    return {early + cumsum(x[2], 0)};
  };
  EXPECT_EQ(kernels_of(fn, wide), (Names{"exp", "matmul", "cumsum", "add"}));
  const std::vector<Tensor> small{values({5, 40}, 1), values({5, 8}, 2), values({40, 8}, 3)};
  EXPECT_EQ(kernels_of(fn, small), (Names{"exp", "cumsum", "matmul+add"}));
}

// A region that waits for a late operand does not pull it, and all on the way to it, before the others.
TEST(Fuse, RegionsThatCanRunDoNotWaitForOneThatCannot) {
  const std::vector<Tensor> inputs{values({20, 20}, 1), values({20, 20}, 2)};
  const auto fn = [](Inputs x) -> Tensors {
    const Tensor first = matmul(x[0], x[1]), second = cumsum(x[0], 0), third = matmul(x[1], x[1]);
    return {first + cumsum(second, 1), third};
  };
  EXPECT_EQ(kernels_of(fn, inputs), (Names{"cumsum", "matmul", "cumsum", "matmul+add"}));
}

// As the norm of all gradients is: few sums go on behind the last reduction, and many are a kernel of their own.
TEST(Fuse, SumsOfManyNumbersStayApartFromReductions) {
  const auto largest_epilogue = [](int terms) {
    graph::Tracer tracer;
    Tensor total;
    for (int i = 0; i < terms; ++i) {
      const Tensor x =
          tracer.add_input({.shape = Shape{9}, .dtype = DType::f32}, Device::cpu(), "x");
      const Tensor norm = sum(square(x));
      total = total.defined() ? total + norm : norm;
    }
    const graph::Graph graph = tracer.finish(std::vector<Tensor>{total});
    size_t largest = 0;
    for (const compiler::Region& region : compiler::fuse(
             graph, {.max_nodes = 512, .max_numbers = 480, .streams = compiler::generated_streams}))
      largest = std::max(largest, region.epilogue.nodes.size());
    return largest;
  };
  EXPECT_EQ(largest_epilogue(12), 11U);
  EXPECT_EQ(largest_epilogue(60), 0U);
}

// Logits are the largest value of a language model: there is one of them at a time.
TEST(Fuse, TheGradientOfLogitsIsWrittenOverThem) {
  const std::vector<Tensor> leaves{values({30, 20}, 1), values({5000, 20}, 2)};
  for (const Tensor& leaf : leaves) leaf.require_grad();
  const std::vector<Tensor> targets{randint({30}, Random(3).stream("targets"), 0, 5000)};
  const auto fn = [&](Inputs x) -> Tensors {
    const Tensor loss = cross_entropy(linear(leaves[0], leaves[1]), x[0]);
    const std::vector<Tensor> grads = grad(loss, leaves);
    return {loss.detach(), grads[0], grads[1]};
  };
  const Tensors expected = fn(targets);
  runtime::CompiledFunction compiled(fn, {});
  const Tensors got = compiled.run(targets);
  for (int i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i].to_vector<float>(), expected[i].to_vector<float>());
  EXPECT_LT(compiled.executable(targets).plan().arena_bytes, 2 * 30 * 5000 * 4);
}

TEST(FuseThreads, SameBitsOnAnyNumberOfThreads) {
  const std::vector<Tensor> inputs{values({400, 192}, 1), values({500, 192}, 2), values({500}, 3),
                                   values({400, 500}, 4)};
  runtime::CompiledFunction f(
      [](Inputs x) -> Tensors {
        const Tensor y = gelu(linear(x[0], x[1], x[2])) + x[3];
        return {y, sum(square(y)), sum(y * y, {0})};
      },
      {});
  std::vector<std::vector<float>> first;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    const Tensors got = f.run(inputs);
    for (int i = 0; i < got.size(); ++i) {
      if (threads == 1) first.push_back(got[i].to_vector<float>());
      EXPECT_EQ(got[i].to_vector<float>(), first[static_cast<size_t>(i)]);
    }
  }
  set_num_threads(available_cores());
}

}  // namespace
}  // namespace brrr
