#include "brrr/ops/einops/einops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "brrr/autodiff/grad.h"
#include "brrr/brrr.h"

namespace brrr {
namespace {

using testing::Each;
using testing::ElementsAre;
using Values = std::vector<double>;

// ---- the lecture's numbers ---------------------------------------------------------------------

TEST(Einsum, HasTheLecturesNumbers) {
  const Tensor x = ones({2, 3, 4}), y = ones({2, 3, 4});
  for (const char* pattern : {"batch seq1 hidden, batch seq2 hidden -> batch seq1 seq2",
                              "... seq1 hidden, ... seq2 hidden -> ... seq1 seq2"}) {
    const Tensor z = einsum(pattern, {x, y});
    EXPECT_EQ(z.shape(), (Shape{2, 3, 3}));
    EXPECT_THAT(z.to_vector<float>(), Each(4.0F));
  }
}

TEST(Reduce, HasTheLecturesNumbers) {
  const Tensor x = ones({2, 3, 4});
  EXPECT_EQ(reduce(x, "... hidden -> ...", Reduce::sum).shape(), (Shape{2, 3}));
  EXPECT_THAT(reduce(x, "... hidden -> ...", Reduce::sum).to_vector<float>(), Each(4.0F));
  EXPECT_THAT(reduce(x, "... hidden -> ...", Reduce::mean).to_vector<float>(), Each(1.0F));
}

TEST(Rearrange, HasTheLecturesNumbers) {
  const Tensor x = ones({2, 3, 8}), w = ones({4, 4});
  const Tensor heads = rearrange(x, "... (heads hidden1) -> ... heads hidden1", {{"heads", 2}});
  EXPECT_EQ(heads.shape(), (Shape{2, 3, 2, 4}));
  const Tensor y = einsum("... hidden1, hidden1 hidden2 -> ... hidden2", {heads, w});
  EXPECT_EQ(y.shape(), (Shape{2, 3, 2, 4}));
  const Tensor merged = rearrange(y, "... heads hidden2 -> ... (heads hidden2)");
  EXPECT_EQ(merged.shape(), (Shape{2, 3, 8}));
  EXPECT_THAT(merged.to_vector<float>(), Each(4.0F));
}

// ---- by hand -----------------------------------------------------------------------------------

TEST(Rearrange, IsAViewWhereStridesAllowIt) {
  const Tensor x = ones({2, 3, 8});
  for (const char* pattern : {"a b c -> c a b", "a b c -> (a b) c", "a b (h d) -> a h b d",
                              "a b c -> a 1 b c ()", "... -> ...", "a ... -> ... a"}) {
    const bool has_h = std::string_view(pattern).find('h') != std::string_view::npos;
    const std::vector<AxisSize> sizes =
        has_h ? std::vector<AxisSize>{{"h", 2}} : std::vector<AxisSize>{};
    EXPECT_TRUE(shares_storage(rearrange(x, pattern, sizes), x)) << pattern;
  }
  EXPECT_FALSE(shares_storage(rearrange(x, "a b c -> (c a b)"), x));
}

TEST(Rearrange, InfersTheSizeThatIsNotGiven) {
  const Tensor x = arange(24);
  EXPECT_EQ(rearrange(x, "(a b c) -> c b a", {{"a", 2}, {"c", 4}}).shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(rearrange(x, "(a 1 b) -> a b ()", {{"b", 6}}).shape(), (Shape{4, 6, 1}));
  EXPECT_EQ(rearrange(reshape(x, {1, 24}), "() n -> n").shape(), Shape{24});
  EXPECT_EQ(rearrange(reshape(x, {2, 3, 4}), "... -> (...)").shape(), Shape{24});
  EXPECT_EQ(rearrange(tensor(5), "-> 1").shape(), Shape{1});
  EXPECT_EQ(rearrange(tensor({{5}}), "1 1 ->").shape(), Shape{});
}

TEST(Reduce, PoolsByNumbersInGroups) {
  const Tensor x = reshape(cast(arange(16), DType::f32), {4, 4});
  EXPECT_THAT(reduce(x, "(h 2) (w 2) -> h w", Reduce::max).to_vector<float>(),
              ElementsAre(5, 7, 13, 15));
  EXPECT_THAT(reduce(x, "(h 2) (w 2) -> h w", Reduce::min).to_vector<float>(),
              ElementsAre(0, 2, 8, 10));
  EXPECT_THAT(reduce(x, "a b -> 1 b", Reduce::mean).to_vector<float>(), ElementsAre(6, 7, 8, 9));
  EXPECT_EQ(reduce(x, "... -> ", Reduce::sum).item<float>(), 120);
}

TEST(Reduce, HasTheDtypeOfAReductionEvenOverNoAxes) {
  EXPECT_EQ(reduce(tensor({1, 2}, DType::i32), "n -> n", Reduce::sum).dtype(), DType::i64);
  EXPECT_EQ(reduce(tensor({1, 2}), "n -> n", Reduce::sum).dtype(), DType::f32);
}

TEST(Repeat, IsAViewUnlessMerged) {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  const Tensor y = repeat(x, "h w -> h w c", {{"c", 3}});
  EXPECT_EQ(y.shape(), (Shape{2, 2, 3}));
  EXPECT_TRUE(shares_storage(x, y));
  EXPECT_THAT(repeat(x, "h w -> h (w 2)").to_vector<float>(), ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  EXPECT_THAT(repeat(x, "h w -> h (2 w)").to_vector<float>(), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4));
  EXPECT_EQ(repeat(x, "h w -> n h w", {{"n", 0}}).shape(), (Shape{0, 2, 2}));
}

TEST(Einsum, TakesDiagonalsAndTraces) {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  EXPECT_EQ(einsum("i i ->", {x}).item<float>(), 5);
  EXPECT_THAT(einsum("i i -> i", {x}).to_vector<float>(), ElementsAre(1, 4));
  EXPECT_TRUE(shares_storage(einsum("i i -> i", {x}), x));
  EXPECT_TRUE(shares_storage(einsum("i j -> j i", {x}), x));
}

TEST(Einsum, OfIntegersKeepsTheirDtype) {
  const Tensor x = tensor({{1, 2}, {3, 4}}, DType::i32);
  const Tensor y = einsum("i j, j k -> i", {x, x});
  EXPECT_EQ(y.dtype(), DType::i32);
  EXPECT_THAT(y.to_vector<int>(), ElementsAre(17, 37));  // row sums 3 and 7: 1*3 + 2*7, 3*3 + 4*7
}

// Attention as a model has it: q, k, v are views of one projection, and nothing is copied.
TEST(Einsum, CopiesNothingForAttention) {
  const Tensor q = rearrange(ones({2, 5, 24}), "b s (h d) -> b s h d", {{"h", 3}});
  const Tensor x = ones({2, 5, 24}), y = ones({2, 5, 7}), w = ones({24, 7});
  const Tensor scores = ones({2, 3, 5, 5}), heads_w = reshape(w, {3, 8, 7});
  CostCounter counter;
  einsum("b s h d, b t h d -> b h s t", {q, q});
  einsum("b h s t, b t h d -> b h s d", {scores, q});
  einsum("b s i, i o -> b s o", {x, w});
  einsum("b s o, i o -> b s i", {y, w});
  einsum("b s h d, h d o -> b s o", {q, heads_w});
  EXPECT_EQ(counter.total(), counter.contractions());
}

TEST(Einsum, OrdersAChainByFlops) {
  const Tensor a = ones({50, 2}), b = ones({2, 50}), c = ones({50, 1});
  CostCounter counter;
  einsum("i j, j k, k l -> i l", {a, b, c});
  EXPECT_EQ(counter.contractions().flops, 2 * (2 * 50 * 1 + 50 * 2 * 1)) << "a (b c)";
  CostCounter greedy;
  einsum("i j, j k, k l, l m, m n, n o, o p, p q, q r, r s -> i s", {a, b, a, b, a, b, a, b, a, b});
  EXPECT_LT(greedy.contractions().flops, 2 * 10 * 50 * 50 * 2);
}

TEST(Einsum, ThreadsShareItsTables) {
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  for (size_t t = 0; t < good.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string name = join_text("n", i % 40);
        const Tensor x = ones({2, 3});
        const Tensor y = einsum("a " + name + ", b " + name + " -> a b", {x, x});
        const Tensor z = rearrange(y, "a " + name + " -> (a " + name + ")");
        good[t] += z.shape() == Shape{4} && y[0][0].item<float>() == 3 ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(good, Each(200));
}

// ---- gradients: (f(x + h) - f(x - h)) / 2h of a weighted sum -------------------------------------

void expect_gradients(const std::vector<Shape>& shapes,
                      const std::function<Tensor(const std::vector<Tensor>&)>& f) {
  std::vector<Tensor> inputs;
  for (uint32_t i = 0; i < shapes.size(); ++i) {
    inputs.push_back(normal(shapes[i], RandomKey{.seed = 10 + i}, {}, {.dtype = DType::f64}));
    inputs.back().require_grad();
  }
  const Tensor weight = normal(f(inputs).shape(), RandomKey{.seed = 9}, {}, {.dtype = DType::f64});
  const auto loss = [&] { return sum(f(inputs) * weight); };
  const std::vector<Tensor> grads = grad(loss(), inputs);
  constexpr double kStep = 1e-6;  // the error of a difference is about 1e-16 / h + h^2
  const NoGrad scope;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Values expected = grads[i].to_vector<double>();
    double* x = inputs[i].data<double>();
    for (size_t j = 0; j < expected.size(); ++j) {
      const double kept = x[j];
      x[j] = kept + kStep;
      const double above = loss().item<double>();
      x[j] = kept - kStep;
      const double below = loss().item<double>();
      x[j] = kept;
      ASSERT_NEAR((above - below) / (2 * kStep), expected[j], 1e-7) << "input " << i;
    }
  }
}

TEST(EinopsGradient, OfEinsumIsTheFiniteDifference) {
  const auto of = [](const char* pattern) {
    return [pattern](const std::vector<Tensor>& x) { return einsum(pattern, x); };
  };
  expect_gradients({{2, 3, 2, 2}, {2, 4, 2, 2}}, of("b s h d, b t h d -> b h s t"));
  expect_gradients({{3, 3}}, of("i i ->"));
  expect_gradients({{2, 3}, {3, 4}, {4, 2}}, of("i j, j k, k l -> l i"));
  expect_gradients({{2, 1, 3}, {4, 3}}, of("... i, ... i -> ..."));
  expect_gradients({{2, 3, 2}, {3}}, of("a b a, b -> a"));
  expect_gradients({{2, 3}, {4}}, of("i j, k -> k i"));
}

TEST(EinopsGradient, OfRearrangeReduceAndRepeatIsTheFiniteDifference) {
  expect_gradients({{2, 6}}, [](const std::vector<Tensor>& x) {
    return rearrange(x[0], "a (b c) -> c (b a)", {{"b", 2}});
  });
  expect_gradients({{2, 6}}, [](const std::vector<Tensor>& x) {
    return reduce(x[0], "a (b 2) -> b a", Reduce::mean);
  });
  expect_gradients({{2, 6}}, [](const std::vector<Tensor>& x) {
    return reduce(x[0], "a ... -> a", Reduce::max);
  });
  expect_gradients({{2, 3}}, [](const std::vector<Tensor>& x) {
    return repeat(x[0], "a b -> (b n) a", {{"n", 2}});
  });
}

}  // namespace
}  // namespace brrr
