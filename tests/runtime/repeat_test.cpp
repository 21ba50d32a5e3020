// Gradient accumulation in compiled programs: the bits of the loop, one set of kernels for any count.
#include "brrr/ops/control/repeat.h"

#include <gtest/gtest.h>

#include <random>

#include "brrr/autodiff/grad.h"
#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/loss/cross_entropy.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/norm/layer_norm.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/compile.h"
#include "support/error_of.h"

namespace brrr {
namespace {

const compiler::PipelineOptions kVariants[] = {{},
                                               {.without = {"simplify"}},
                                               {.without = {"fuse"}},
                                               {.without = {"plan_memory"}},
                                               {.without = {"simplify", "fuse", "plan_memory"}}};

constexpr int64_t kMost = 4, kBatch = 6, kVocab = 11;

Tensor values(const Shape& shape, uint32_t draw) {
  return normal(shape, RandomKey{.seed = 7, .stream = 2, .draw = draw});
}
Tensor count_of(int64_t n) { return from_values(std::vector<int64_t>{n}, {}); }
Tensor tokens(int64_t first) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < kMost * kBatch; ++i) ids.push_back((first + i * i) % kVocab);
  return from_values(ids, {kMost, kBatch});
}

// A small network with momentum, whose step accumulates over micro-batches.
struct Network {
  Tensor table = values({kVocab, 8}, 1), w1 = values({8, 32}, 2), b1 = values({32}, 3),
         w2 = values({32, kVocab}, 4), gain = ones({8}), shift = zeros({8});
  std::vector<Tensor> parameters{table, w1, b1, w2, gain, shift};
  std::vector<Tensor> momenta;

  Network() {
    for (const Tensor& p : parameters) {
      p.require_grad();
      momenta.push_back(zeros(p.shape()));
    }
  }
  Tensor loss(const Tensor& x, const Tensor& y) const {
    const Tensor h = layer_norm(embedding(table, x), gain, shift);
    return cross_entropy(matmul(gelu(matmul(h, w1) + b1), w2), y);
  }
  Tensor step(const Tensor& x, const Tensor& y, const Tensor& count) const {
    std::vector<Tensor> sums = repeat(count, {x, y}, [&](const Tensor& x_i, const Tensor& y_i) {
      const Tensor part = loss(x_i, y_i);
      std::vector<Tensor> parts = grad(part, parameters);
      parts.push_back(part);
      return parts;
    });
    NoGrad update;
    for (size_t i = 0; i < parameters.size(); ++i) {
      momenta[i].copy_from(momenta[i] * 0.9 + sums[i] / count);
      parameters[i].copy_from(parameters[i] - momenta[i] * 0.05);
    }
    return sums.back() / count;
  }
};

TEST(Repeat, TrainsLikeTheEagerLoop) {
  const Tensor x = tokens(1), y = tokens(2);
  const Network eager;
  std::vector<float> losses;
  const int64_t counts[] = {4, 1, 3, 2, 4, 4};
  for (int64_t n : counts) losses.push_back(eager.step(x, y, count_of(n)).item<float>());
  EXPECT_LT(losses.back(), losses.front());
  for (const compiler::PipelineOptions& options : kVariants) {
    const Network network;
    auto step = runtime::compile(
        [&](const Tensor& a, const Tensor& b, const Tensor& n) { return network.step(a, b, n); },
        options);
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_EQ(step(x, y, count_of(counts[i])).item<float>(), losses[i]);
    EXPECT_EQ(step.function().programs(), 1);  // the count is data
    for (size_t i = 0; i < eager.parameters.size(); ++i)
      EXPECT_EQ(network.parameters[i].to_vector<float>(), eager.parameters[i].to_vector<float>());
  }
}

// What accumulation means, without repeat(): gradients of one micro-batch after the other, added up.
TEST(Repeat, EqualsGradientsAddedByHand) {
  const Tensor x = tokens(3), y = tokens(5);
  const Network network;
  std::vector<Tensor> expected;
  for (int64_t i = 0; i < kMost; ++i) {
    const std::vector<Tensor> grads = grad(network.loss(x[i], y[i]), network.parameters);
    for (size_t p = 0; p < grads.size(); ++p) {
      if (i == 0) expected.push_back(zeros(grads[p].shape()));
      expected[p] = expected[p] + grads[p];
    }
  }
  auto accumulate = runtime::compile([&](const Tensor& a, const Tensor& b, const Tensor& n) {
    return repeat(n, {a, b}, [&](const Tensor& a_i, const Tensor& b_i) {
      return grad(network.loss(a_i, b_i), network.parameters);
    });
  });
  const std::vector<Tensor> found = accumulate(x, y, count_of(kMost));
  for (size_t p = 0; p < expected.size(); ++p)
    EXPECT_EQ(found[p].to_vector<float>(), expected[p].to_vector<float>());
}

// In mixed precision the products of a body are bf16 and its sums f32: as one micro-batch after the other in
// bf16, added up in f32.
TEST(Repeat, Bf16BodiesAddUpInF32) {
  const Tensor x = tokens(3), y = tokens(5);
  const Network network;
  const compiler::PipelineOptions bf16{.precision = {.policy = compiler::Precision::bf16_mixed}};
  auto one = runtime::compile(
      [&](const Tensor& a, const Tensor& b) {
        return grad(network.loss(a, b), network.parameters);
      },
      bf16);
  std::vector<Tensor> expected;
  for (int64_t i = 0; i < kMost; ++i) {
    const std::vector<Tensor> grads = one(contiguous(x[i]), contiguous(y[i]));
    for (size_t p = 0; p < grads.size(); ++p) {
      if (i == 0) expected.push_back(zeros(grads[p].shape()));
      expected[p] = expected[p] + cast(grads[p], DType::f32);
    }
  }
  const auto sums = [&](const Tensor& a, const Tensor& b, const Tensor& n) {
    return repeat(n, {a, b}, [&](const Tensor& a_i, const Tensor& b_i) {
      return grad(network.loss(a_i, b_i), network.parameters);
    });
  };
  auto low = runtime::compile(sums, bf16), exact = runtime::compile(sums);
  const std::vector<Tensor> found = low(x, y, count_of(kMost)), f32 = exact(x, y, count_of(kMost));
  for (size_t p = 0; p < expected.size(); ++p) {
    EXPECT_EQ(found[p].dtype(), DType::f32);
    const auto a = found[p].to_vector<float>(), b = expected[p].to_vector<float>();
    const double size = norm(expected[p]).item<double>();
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 0.01 * size) << p << " " << i;
    EXPECT_NE(a, f32[p].to_vector<float>()) << "products were not bf16";
  }
}

// The mean over equal micro-batches is the loss of them all; only the order of additions differs.
TEST(Repeat, AverageIsTheGradientOfTheWholeBatch) {
  const Tensor x = tokens(3), y = tokens(5);
  const Network network;
  const std::vector<Tensor> whole = grad(
      network.loss(reshape(x, {kMost * kBatch}), reshape(y, {kMost * kBatch})), network.parameters);
  auto average = runtime::compile([&](const Tensor& a, const Tensor& b, const Tensor& n) {
    std::vector<Tensor> sums = repeat(n, {a, b}, [&](const Tensor& a_i, const Tensor& b_i) {
      return grad(network.loss(a_i, b_i), network.parameters);
    });
    for (Tensor& sum : sums) sum = sum / n;
    return sums;
  });
  const std::vector<Tensor> found = average(x, y, count_of(kMost));
  for (size_t p = 0; p < whole.size(); ++p) {
    const std::vector<float> a = found[p].to_vector<float>(), b = whole[p].to_vector<float>();
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-6);  // values near 1, 24 rows
  }
}

// Bodies of random ops over a slice, a captured tensor, the index and two carried ones.
TEST(Repeat, RandomBodiesKeepTheirBits) {
  const Tensor x = values({4, 5, 70}, 20), w = values({5, 1}, 21);
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const auto run = [&](const compiler::PipelineOptions* options) {
      const Tensor kept = values({5, 70}, 22), other = values({70}, 23);
      const auto body = [&](const Tensor& index, const Tensor& part) -> Tensors {
        std::mt19937 generator(seed);
        std::vector<Tensor> pool{part, w, kept, other, cast(index, DType::f32)};
        for (int i = 0; i < 12; ++i) {
          const Tensor a = pool[generator() % pool.size()], b = pool[generator() % pool.size()];
          switch (generator() % 7) {
            case 0: pool.push_back(a + b); break;
            case 1: pool.push_back(tanh(a * b)); break;
            case 2: pool.push_back(maximum(a, 0.25) - b); break;
            case 3: pool.push_back(cast(cast(a, DType::bf16), DType::f32)); break;
            case 4: kept.copy_from(tanh(kept + a)); break;
            case 5: other.copy_from(mean(kept * a, {0}) + other * 0.5); break;
            default: slice(kept, 0, {1, 3}).copy_from(slice(kept, 0, {2, 4}) * 0.5); break;
          }
        }
        return {pool.back() + kept, other};
      };
      const auto program = [&](const Tensor& a, const Tensor& n) -> Tensors {
        const std::vector<Tensor> sums = repeat(n, {a}, body);
        return {sums[0], sums[1], kept * 1.0, other * 1.0};
      };
      Tensors results;
      if (options) {
        auto f = runtime::compile(program, *options);
        f(x, count_of(1));
        results = f(x, count_of(3));
      } else {
        program(x, count_of(1));
        results = program(x, count_of(3));
      }
      std::vector<std::vector<float>> found;
      for (const Tensor& result : results) found.push_back(result.to_vector<float>());
      found.push_back(kept.to_vector<float>());
      found.push_back(other.to_vector<float>());
      return found;
    };
    const std::vector<std::vector<float>> expected = run(nullptr);
    for (const compiler::PipelineOptions& options : kVariants)
      ASSERT_EQ(run(&options), expected) << seed;
  }
}

TEST(Repeat, ThreadCountsDoNotMatter) {
  const Tensor x = tokens(1), y = tokens(2);
  std::vector<float> expected;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    const Network network;
    auto step = runtime::compile(
        [&](const Tensor& a, const Tensor& b, const Tensor& n) { return network.step(a, b, n); });
    for (int i = 0; i < 3; ++i) step(x, y, count_of(3));
    const std::vector<float> weights = network.w1.to_vector<float>();
    if (expected.empty()) expected = weights;
    EXPECT_EQ(weights, expected) << threads << " threads";
  }
  set_num_threads(available_cores());
}

// Sums large enough to be cleared and copied in pieces by several threads.
TEST(Repeat, LargeSumsOverThreads) {
  const Tensor x = values({3, 700, 900}, 9);
  const auto body = [](const Tensor& part) { return part * 0.5; };
  const std::vector<float> expected = repeat(count_of(3), {x}, body)[0].to_vector<float>();
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    auto f =
        runtime::compile([&](const Tensor& a, const Tensor& n) { return repeat(n, {a}, body)[0]; });
    EXPECT_EQ(f(x, count_of(3)).to_vector<float>(), expected);
    EXPECT_EQ(f(x, count_of(3)).to_vector<float>(), expected);  // sums start at zero every time
  }
  set_num_threads(available_cores());
}

TEST(Repeat, IsNotUnrolled) {
  const auto compiled = [](int64_t most) {
    auto f = runtime::compile([](const Tensor& a, const Tensor& n) {
      return repeat(n, {a}, [](const Tensor& row) { return sum(exp(row) * row, {0}); })[0];
    });
    const Tensor a = ones({most, 64, 64});
    const runtime::Executable& program = f.function().executable({{a, count_of(1)}});
    return std::tuple(program.kernels().kernels.size(), program.plan().arena_bytes,
                      program.cost().flops);
  };
  const auto [kernels, bytes, flops] = compiled(2);
  const auto [more_kernels, more_bytes, more_flops] = compiled(64);
  EXPECT_EQ(kernels, more_kernels);
  EXPECT_EQ(bytes, more_bytes);
  EXPECT_EQ(32 * flops, more_flops);
}

TEST(Repeat, CountersSeeTheIterationsThatRan) {
  auto f = runtime::compile([](const Tensor& a, const Tensor& n) {
    return repeat(n, {a}, [](const Tensor& row) { return exp(row); })[0];
  });
  const Tensor a = ones({8, 16});
  const auto flops_of = [&](int64_t n) {
    CostCounter counter;
    f(a, count_of(n));
    return counter.total().flops;
  };
  EXPECT_GT(flops_of(1), 0);
  EXPECT_EQ(flops_of(5), 5 * flops_of(1));
  EXPECT_EQ(flops_of(8), f.function().executable({{a, count_of(8)}}).cost().flops);
}

TEST(Repeat, RunAllocatesOnlyItsResults) {
  auto f = runtime::compile([](const Tensor& a, const Tensor& n) {
    return repeat(n, {a}, [](const Tensor& part) { return matmul(exp(part), part); })[0];
  });
  const Tensor a = values({3, 64, 64}, 5), n = count_of(3);
  f(a, n);
  Ledger& books = ledger(Device::cpu());
  books.reset_peak();
  const int64_t before = books.live().value();
  const Tensor result = f(a, n);
  EXPECT_EQ(books.peak().value() - before, result.bytes().value());
}

TEST(Repeat, WritesOfTheBodyKeepAddresses) {
  for (const compiler::PipelineOptions& options : kVariants) {
    const Tensor mean = zeros({3}), last = zeros({2, 3});
    const float* address = mean.data<float>();
    auto f = runtime::compile(
        [&](const Tensor& a, const Tensor& n) {
          return repeat(n, {a}, [&](const Tensor& index, const Tensor& row) {
            mean.copy_from(mean * 0.5 + row);
            last[1].copy_from(row * cast(index, DType::f32));
            return sum(mean);
          })[0];
        },
        options);
    const Tensor rows = tensor({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}});
    EXPECT_EQ(f(rows, count_of(3)).item<float>(), 6 + 18 + 33);
    EXPECT_EQ(mean.data<float>(), address);
    EXPECT_EQ(mean.to_vector<float>(), (std::vector<float>{9.25, 11, 12.75}));
    EXPECT_EQ(last.to_vector<float>(), (std::vector<float>{0, 0, 0, 14, 16, 18}));
    f(rows, count_of(1));
    EXPECT_EQ(mean.to_vector<float>(), (std::vector<float>{5.625, 7.5, 9.375}));
  }
}

// The value before the loop is needed after it: the carried one must not lie on it.
TEST(Repeat, OldValuesOutliveTheLoop) {
  for (const compiler::PipelineOptions& options : kVariants) {
    const Tensor total = tensor({1, 2}), other = tensor({5, 5});
    auto f = runtime::compile(
        [&](const Tensor& a, const Tensor& n) -> Tensors {
          const Tensor old = clone(total), start = a[0] * 3.0;
          const Tensor held = start * 1.0;
          held.copy_from(start);  // one value under two names, one of them carried
          const std::vector<Tensor> sums = repeat(n, {a}, [&](const Tensor& row) {
            total.copy_from(total + row + old);
            held.copy_from(held * 2.0);
            return start + other;
          });
          other.copy_from(total);
          return {old, sums[0], start, held};
        },
        options);
    const Tensors found = f(tensor({{1, 1}, {2, 2}}), count_of(2));
    EXPECT_EQ(found[0].to_vector<float>(), (std::vector<float>{1, 2}));
    EXPECT_EQ(found[1].to_vector<float>(), (std::vector<float>{16, 16}));
    EXPECT_EQ(found[2].to_vector<float>(), (std::vector<float>{3, 3}));
    EXPECT_EQ(found[3].to_vector<float>(), (std::vector<float>{12, 12}));
    EXPECT_EQ(total.to_vector<float>(), (std::vector<float>{6, 9}));
    EXPECT_EQ(other.to_vector<float>(), (std::vector<float>{6, 9}));
  }
}

TEST(Repeat, SlicesAndCapturesWithStrides) {
  const Tensor w = values({5, 7}, 1), x = values({5, 3, 4}, 2);
  const auto program = [&](const Tensor& a, const Tensor& n) {
    const Tensor column = select(w, 1, 3);
    return repeat(n, {transpose(a, 0, 2)}, [&](const Tensor& part) {  // slices of [3, 5]
      return part * column + transpose(slice(w, 1, {0, 3}));
    })[0];
  };
  auto f = runtime::compile(program);
  for (int64_t n : {1, 4})
    EXPECT_EQ(f(x, count_of(n)).to_vector<float>(), program(x, count_of(n)).to_vector<float>());
}

TEST(Repeat, BodiesInBodies) {
  const Tensor x = values({3, 4}, 3);
  const auto program = [](const Tensor& a, const Tensor& n) {
    return repeat(n, {a}, [&](const Tensor& row) {
      const Tensor scale = sum(row);
      return repeat(n, {a}, [&](const Tensor& other) { return exp(row * other) * scale; });
    })[0];
  };
  auto f = runtime::compile(program);
  EXPECT_EQ(f(x, count_of(2)).to_vector<float>(), program(x, count_of(2)).to_vector<float>());
}

TEST(Repeat, CountsAreChecked) {
  auto f = runtime::compile([](const Tensor& a, const Tensor& n) {
    return repeat(n, {a}, [](const Tensor& row) { return row; })[0];
  });
  const Tensor a = ones({3, 2});
  EXPECT_EQ(f(a, count_of(0)).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_NE(error_of([&] { f(a, count_of(4)); }).find("between 0 and the 3"), std::string::npos);
  EXPECT_NE(error_of([&] { f(a, count_of(-1)); }).find("a count of -1"), std::string::npos);
  EXPECT_NE(error_of([&] {
              repeat(count_of(4), {a}, [](const Tensor& row) { return row; });
            }).find("between 0 and the 3"),
            std::string::npos);
}

// A number in place of an input, and an index without slices.
TEST(Repeat, CountMayBeANumber) {
  auto f = runtime::compile([](const Tensor& x) {
    const Tensor times = full({}, 5, {.dtype = DType::i64});
    return repeat(times, std::span<const Tensor>(),
                  [&](const Tensor& index, std::span<const Tensor>) -> std::vector<Tensor> {
                    return {x * cast(index, DType::f32)};
                  })[0];
  });
  EXPECT_EQ(f(tensor({1, 2})).to_vector<float>(), (std::vector<float>{10, 20}));
}

}  // namespace
}  // namespace brrr
