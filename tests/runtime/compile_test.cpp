// Compiled functions against eager ones: the same bits, whatever is fused, shared or left alone.
#include "brrr/runtime/compile.h"

#include <gtest/gtest.h>

#include <random>

#include "brrr/autodiff/grad.h"
#include "brrr/graph/interpret.h"
#include "brrr/graph/trace.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/loss/cross_entropy.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/norm/layer_norm.h"
#include "brrr/ops/norm/softmax.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "support/error_of.h"

namespace brrr {
namespace {

const compiler::PipelineOptions kVariants[] = {{},
                                               {.without = {"simplify"}},
                                               {.without = {"fuse"}},
                                               {.without = {"plan_memory"}},
                                               {.without = {"simplify", "fuse", "plan_memory"}}};

Tensor values(const Shape& shape, uint32_t draw) {
  return normal(shape, RandomKey{.seed = 7, .stream = 1, .draw = draw});
}

TEST(Compile, RunsWhatWasTraced) {
  auto f = runtime::compile([](const Tensor& x) { return sum(cos(cos(x)) * 2.0); });
  const Tensor x = values({1000}, 1);
  EXPECT_EQ(f(x).item<float>(), sum(cos(cos(x)) * 2.0).item<float>());
  const runtime::Executable& program = f.function().executable({{x}});
  ASSERT_EQ(program.kernels().kernels.size(), 2U);  // the number, and the sum with its prologue
  EXPECT_EQ(program.kernels().kernels[1].name, "cos+cos+mul+sum");
}

TEST(Compile, TakesFunctionsThatNameTheirParameters) {
  const auto named = [](Tensor x) { return x; };
  const auto unnamed = [](auto x) { return x; };
  static_assert(runtime::NamesItsParameters<decltype(named)>);
  static_assert(
      !runtime::NamesItsParameters<decltype(unnamed)>);  // compile says so by a static_assert
  Tensor (*plain)(const Tensor&) = +[](const Tensor& x) { return x * 2.0; };
  EXPECT_EQ(runtime::compile(plain)(tensor({3})).item<float>(), 6);
}

TEST(Compile, TracesOncePerType) {
  int traces = 0;
  auto f = runtime::compile([&](const Tensor& x) {
    ++traces;
    return x + 1.0;
  });
  for (int64_t n : {3, 4, 3, 4}) EXPECT_EQ(f(ones({n})).numel(), n);
  f(ones({3}, {.dtype = DType::f64}));
  EXPECT_EQ(traces, 3);
  EXPECT_EQ(f.function().programs(), 3);
}

TEST(Compile, StatesAreReadWhereTheyAre) {
  const Tensor w = tensor({1, 2});
  auto f = runtime::compile([&](const Tensor& x) { return x * w; });
  const Tensor x = ones({2});
  f(x);
  w.fill(9);
  EXPECT_EQ(f(x).to_vector<float>(), (std::vector<float>{9, 9}));
}

TEST(Compile, WritesKeepTheAddress) {
  for (const compiler::PipelineOptions& options : kVariants) {
    const Tensor w = tensor({{1, 2}, {3, 4}});
    const Tensor row = w[1];
    const float* address = w.data<float>();
    auto step = runtime::compile([&](const Tensor& x) { w.copy_from(w * 2.0 + x); }, options);
    step(ones({2, 2}));
    step(ones({2, 2}));
    EXPECT_EQ(w.data<float>(), address);
    EXPECT_EQ(row.to_vector<float>(), (std::vector<float>{15, 19}));
  }
}

TEST(Compile, SwappedStatesAndAliases) {
  for (const compiler::PipelineOptions& options : kVariants) {
    const Tensor a = tensor({1, 2}), b = tensor({3, 4}), c = tensor({5, 6});
    auto swap = runtime::compile(
        [&]() -> Tensors {
          const Tensor old = clone(a);
          a.copy_from(b);
          b.copy_from(old);
          c.copy_from(c + a);
          return {a, old, c};
        },
        options);
    const Tensors results = swap();
    EXPECT_EQ(a.to_vector<float>(), (std::vector<float>{3, 4}));
    EXPECT_EQ(b.to_vector<float>(), (std::vector<float>{1, 2}));
    EXPECT_EQ(c.to_vector<float>(), (std::vector<float>{8, 10}));
    EXPECT_EQ(results[0].to_vector<float>(), (std::vector<float>{3, 4}));
    EXPECT_EQ(results[1].to_vector<float>(), (std::vector<float>{1, 2}));
    EXPECT_EQ(results[2].to_vector<float>(), (std::vector<float>{8, 10}));
    a.fill(0);  // results are the caller's own
    EXPECT_EQ(results[0].to_vector<float>(), (std::vector<float>{3, 4}));
  }
}

// The old value is read after the new one was computed: it must survive until then.
TEST(Compile, OldValueOutlivesTheNew) {
  for (const compiler::PipelineOptions& options : kVariants) {
    const Tensor w = tensor({1, 2, 3});
    auto step = runtime::compile(
        [&] {
          const Tensor old = w * 1.0;
          const Tensor fresh = exp(w);
          w.copy_from(fresh);
          return sum(matmul(reshape(old, {1, 3}), reshape(fresh, {3, 1})));
        },
        options);
    const Tensor before = clone(w);
    const float expected = sum(before * exp(before)).item<float>();
    EXPECT_NEAR(step().item<float>(), expected, 1e-4);
    EXPECT_EQ(w.to_vector<float>(), exp(before).to_vector<float>());
  }
}

TEST(Compile, WriteThroughViews) {
  for (const compiler::PipelineOptions& options : kVariants) {
    const Tensor x = tensor({{1, 2}, {3, 4}});
    auto step = runtime::compile(
        [&] {
          const Tensor column = select(x, 1, 0);
          column.copy_from(column + 1.0);
          return sum(x);
        },
        options);
    EXPECT_EQ(step().item<float>(), 12);
    EXPECT_EQ(step().item<float>(), 14);
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{3, 2, 5, 4}));
  }
}

// A small network with embeddings, norms and Adam, trained in both ways.
struct Network {
  Tensor table = values({11, 8}, 1), w1 = values({8, 32}, 2), b1 = values({32}, 3),
         w2 = values({32, 11}, 4), gain = ones({8}), shift = zeros({8});
  std::vector<Tensor> parameters{table, w1, b1, w2, gain, shift};
  std::vector<Tensor> first, second;

  Network() {
    for (const Tensor& p : parameters) {
      p.require_grad();
      first.push_back(zeros(p.shape()));
      second.push_back(zeros(p.shape()));
    }
  }
  Tensor step(const Tensor& tokens, const Tensor& targets, const Tensor& rate) const {
    const Tensor x = layer_norm(embedding(table, tokens), gain, shift);
    const Tensor logits = matmul(gelu(matmul(x, w1) + b1), w2);
    const Tensor loss = cross_entropy(logits, targets);
    const std::vector<Tensor> grads = grad(loss, parameters);
    NoGrad update;
    for (size_t i = 0; i < parameters.size(); ++i) {
      first[i].copy_from(first[i] * 0.9 + grads[i] * 0.1);
      second[i].copy_from(second[i] * 0.99 + square(grads[i]) * 0.01);
      parameters[i].copy_from(parameters[i] - rate * first[i] / (sqrt(second[i]) + 1e-8));
    }
    return loss.detach();
  }
};

TEST(Compile, TrainsLikeEager) {
  const Tensor tokens = from_values(std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8}, {8});
  const Tensor targets = from_values(std::vector<int64_t>{2, 3, 4, 5, 6, 7, 8, 9}, {8});
  const Network eager;
  std::vector<float> losses;
  for (int i = 0; i < 20; ++i)
    losses.push_back(eager.step(tokens, targets, full({}, 0.01)).item<float>());
  EXPECT_LT(losses.back(), 0.5 * losses.front());
  for (const compiler::PipelineOptions& options : kVariants) {
    const Network network;
    auto step = runtime::compile([&](const Tensor& x, const Tensor& y,
                                     const Tensor& rate) { return network.step(x, y, rate); },
                                 options);
    for (float loss : losses) EXPECT_EQ(step(tokens, targets, full({}, 0.01)).item<float>(), loss);
    for (size_t i = 0; i < eager.parameters.size(); ++i)
      EXPECT_EQ(network.parameters[i].to_vector<float>(), eager.parameters[i].to_vector<float>());
  }
}

TEST(Compile, ThreadCountsDoNotMatter) {
  auto f = runtime::compile([](const Tensor& x) { return softmax(gelu(x * 1.5) + x); });
  const Tensor x = values({200, 700}, 5);
  const std::vector<float> expected = f(x).to_vector<float>();
  for (int threads : {1, 5}) {
    set_num_threads(threads);
    EXPECT_EQ(f(x).to_vector<float>(), expected);
  }
  set_num_threads(available_cores());
}

TEST(Compile, ArenaIsWhatTheLedgerSees) {
  const Ledger& books = ledger(Device::cpu());
  const int64_t before = books.live().value();
  auto f = runtime::compile([](const Tensor& x) { return sum(matmul(exp(x), exp(x)) * 2.0); });
  const Tensor x = values({64, 64}, 6);
  const int64_t with_input = books.live().value();
  const compiler::MemoryPlan& plan = f.function().executable({{x}}).plan();
  EXPECT_EQ(books.live().value() - with_input, plan.arena_bytes);
  EXPECT_GE(plan.arena_bytes, plan.lower_bound);
  EXPECT_GT(plan.arena_bytes, 0);
  EXPECT_GT(with_input, before);
}

// Random programs over mixed dtypes, broadcasts, views and numbers.
Tensor random_program(std::mt19937& generator, std::vector<Tensor> pool) {
  const auto pick = [&](size_t n) { return static_cast<size_t>(generator() % n); };
  const auto any = [&]() -> const Tensor& { return pool[pick(pool.size())]; };
  for (int i = 0; i < 25; ++i) {
    const Tensor& a = any();
    switch (pick(11)) {
      case 0: pool.push_back(a + any()); break;
      case 1: pool.push_back(a * any()); break;
      case 2: pool.push_back(where(a < any(), a, any())); break;
      case 3: pool.push_back(tanh(cast(a, DType::f32))); break;
      case 4: pool.push_back(cast(a, DType::bf16)); break;
      case 5: pool.push_back(maximum(a, 0.25)); break;
      case 6: pool.push_back(a - 3); break;
      case 7: pool.push_back(cast(a > 0.5, DType::f32) + any()); break;
      case 8: pool.push_back(transpose(transpose(a, 0, 1) * 0.5, 0, 1)); break;
      case 9: pool.push_back(a - mean(cast(a, DType::f32), {1}, KeepDims::yes)); break;
      default: pool.push_back(cast(cast(a, DType::f16), DType::f64)); break;
    }
  }
  Tensor total = cast(pool[0], DType::f64);
  for (const Tensor& x : pool) total = total * 0.5 + x;
  return total;
}

TEST(Compile, RandomProgramsKeepTheirBits) {
  const Tensor a = values({6, 300}, 10), b = values({6, 1}, 11), c = values({300}, 12);
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const auto program = [&](const Tensor& x, const Tensor& y, const Tensor& z) {
      std::mt19937 generator(seed);
      return random_program(generator, {x, x * y, x + z});
    };
    const std::vector<double> expected = program(a, b, c).to_vector<double>();
    for (const compiler::PipelineOptions& options :
         {compiler::PipelineOptions{}, compiler::PipelineOptions{.without = {"fuse"}}}) {
      auto f = runtime::compile(program, options);
      const std::vector<double> found = f(a, b, c).to_vector<double>();
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        const bool same =
            found[i] == expected[i] || (found[i] != found[i] && expected[i] != expected[i]);
        ASSERT_TRUE(same) << "seed " << seed << " element " << i << ": " << found[i] << " and "
                          << expected[i];
      }
    }
  }
}

// Debugging aid: host state that leaks into a trace makes the second one different.
TEST(Compile, TracingTwiceFindsWhatLeaksIn) {
  int step_number = 0;
  auto leaky =
      runtime::compile([&](const Tensor& x) { return exp(x) * static_cast<double>(++step_number); },
                       {.trace_twice = true});
  const std::string message = error_of([&] { leaky(ones({2})); });
  EXPECT_NE(message.find("in line 3"), std::string::npos) << message;
  EXPECT_NE(message.find("value=1.0"), std::string::npos) << message;
  EXPECT_NE(message.find("value=2.0"), std::string::npos) << message;

  auto changing = runtime::compile(
      [&](const Tensor& x) {
        return x + tensor({1, 2});
      },
      {.trace_twice = true});
  EXPECT_NE(error_of([&] { changing(ones({2})); }).find("was another tensor"), std::string::npos);

  const Tensor w = tensor({1, 2});
  auto clean = runtime::compile([&](const Tensor& x, const Tensor& n) { return x * w * n; },
                                {.trace_twice = true});
  EXPECT_EQ(clean(ones({2}), full({}, 3)).to_vector<float>(), (std::vector<float>{3, 6}));
}

TEST(Compile, RefusesToBranchOnValues) {
  auto f = runtime::compile([](const Tensor& x) { return x.item<float>() > 0 ? x : neg(x); });
  const std::string message = error_of([&] { f(ones({1})); });
  EXPECT_NE(message.find("cannot branch"), std::string::npos) << message;
  EXPECT_NE(message.find("where(condition"), std::string::npos) << message;
  EXPECT_EQ(graph::Tracer::current(), nullptr);
}

// A state whose owner took another tensor would be read where nobody looks any more.
TEST(Compile, ReplacedStatesAreNoticed) {
  Tensor w = tensor({1, 2});
  auto f = runtime::compile([&](const Tensor& x) { return x * w + tensor({10, 20}); });
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{11, 22}));
  w.copy_from(tensor({3, 4}));
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{13, 24}));
  w = tensor({5, 6});
  EXPECT_NE(error_of([&] { f(ones({2})); }).find("replaced or dropped"), std::string::npos);
}

// An input that is a state at the same time keeps the value it was called with.
TEST(Compile, AStateMayBeAnInput) {
  for (const compiler::PipelineOptions& options : kVariants) {
    const Tensor w = tensor({1, 2});
    auto f = runtime::compile(
        [&](const Tensor& x) {
          w.copy_from(w * 10.0);
          return x + w;
        },
        options);
    EXPECT_EQ(f(w).to_vector<float>(), (std::vector<float>{11, 22}));
    EXPECT_EQ(w.to_vector<float>(), (std::vector<float>{10, 20}));
  }
}

TEST(Compile, InputsMayHaveStrides) {
  auto f = runtime::compile([](const Tensor& x) { return exp(x); });
  const Tensor x = values({3, 5}, 8);
  EXPECT_EQ(f(transpose(x)).to_vector<float>(), exp(transpose(x)).to_vector<float>());
  EXPECT_EQ(f(slice(x, 0, {1, 3})).to_vector<float>(), exp(slice(x, 0, {1, 3})).to_vector<float>());
}

TEST(Compile, RefusesOtherTypes) {
  auto f = runtime::compile([](const Tensor& x) { return x + 1.0; });
  runtime::Executable& program = f.function().executable({{ones({3})}});
  EXPECT_NE(error_of([&] { program.run({{ones({4})}}); }).find("f32[3]"), std::string::npos);
  EXPECT_NE(error_of([&] { program.run({}); }).find("takes 1"), std::string::npos);
}

}  // namespace
}  // namespace brrr
