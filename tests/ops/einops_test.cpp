#include "brrr/ops/einops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <thread>
#include <tuple>

#include "brrr/autodiff/grad.h"
#include "brrr/brrr.h"
#include "brrr/ops/einops_parse.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
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
        const std::string name = "n" + std::to_string(i % 40);
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

// ---- against models that go index by index -----------------------------------------------------

// The same values with the axes lying in storage in a random order.
Tensor with_random_strides(const Tensor& x, std::mt19937& random) {
  Axes order, inverse(x.rank(), 0);
  for (int axis = 0; axis < x.rank(); ++axis) order.push_back(axis);
  std::shuffle(order.begin(), order.end(), random);
  for (int i = 0; i < x.rank(); ++i) inverse[static_cast<int>(order[i])] = i;
  return permute(contiguous(permute(x, order)), inverse);
}

// Calls visit(index) for all indices below the sizes.
void for_all_indices(const std::vector<int64_t>& sizes,
                     const std::function<void(const std::vector<int64_t>&)>& visit) {
  std::vector<int64_t> index(sizes.size(), 0);
  if (std::ranges::count(sizes, 0) > 0) return;
  while (true) {
    visit(index);
    size_t axis = sizes.size();
    while (axis > 0 && ++index[axis - 1] == sizes[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

// A random pattern over axes of its own; `dots` of them are written as `...`.
class RandomPattern {
 public:
  RandomPattern(PatternUse use, uint32_t seed) : random_(seed) {
    for (int64_t i = pick(1, 4); i > 0; --i) sizes_.push_back(pick(1, 3));
    for (int i = 0; i < std::ssize(sizes_); ++i) left_.push_back({i});
    if (pick(0, 1) == 0) {  // `...` is a unit of 0 to 2 axes
      std::vector<int> unit;
      for (int64_t i = pick(0, 2); i > 0; --i) {
        unit.push_back(static_cast<int>(sizes_.size()));
        sizes_.push_back(pick(1, 3));
      }
      left_.insert(left_.begin() + pick(0, std::ssize(left_)), unit);
      dots_ = unit;
      has_dots_ = true;
    }
    right_ = left_;
    std::shuffle(right_.begin(), right_.end(), random_);
    if (use == PatternUse::reduce)
      for (int64_t gone = pick(0, 2); gone > 0 && !right_.empty(); --gone) right_.pop_back();
    if (use == PatternUse::repeat) {
      for (int64_t added = pick(0, 2); added > 0; --added) {
        right_.insert(right_.begin() + pick(0, std::ssize(right_)),
                      {static_cast<int>(sizes_.size())});
        given_.push_back(static_cast<int>(sizes_.size()));
        sizes_.push_back(pick(1, 3));
      }
    }
    std::tie(left_text_, left_shape_) = write(left_, true);
    std::tie(right_text_, right_shape_) = write(right_, false);
  }

  std::string text() const { return left_text_ + " -> " + right_text_; }
  Shape left_shape() const { return left_shape_; }
  Shape right_shape() const { return right_shape_; }
  std::mt19937& random() { return random_; }

  std::vector<AxisSize> given() {
    names_.clear();
    for (int axis : given_) names_.push_back(name(axis));
    std::vector<AxisSize> result;
    for (size_t i = 0; i < given_.size(); ++i)
      result.push_back({names_[i], sizes_[static_cast<size_t>(given_[i])]});
    return result;
  }

  // What comes of `values`, folding those that meet in one place.
  Values expected(const Values& values, double start, double (*fold)(double, double)) const {
    Values result(static_cast<size_t>(numel(right_shape_)), start);
    for_all_indices(sizes_, [&](const std::vector<int64_t>& index) {
      double& place = result[static_cast<size_t>(flat(right_, index))];
      place = fold(place, values[static_cast<size_t>(flat(left_, index))]);
    });
    return result;
  }

 private:
  using Units = std::vector<std::vector<int>>;
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  static std::string name(int axis) { return "axis" + std::to_string(axis) + "_x"; }
  bool is_dots(const std::vector<int>& unit) const { return has_dots_ && unit == dots_; }

  int64_t flat(const Units& side, const std::vector<int64_t>& index) const {
    int64_t position = 0;
    for (const std::vector<int>& unit : side) {
      for (int axis : unit) {
        position = position * sizes_[static_cast<size_t>(axis)] + index[static_cast<size_t>(axis)];
      }
    }
    return position;
  }

  std::pair<std::string, Shape> write(const Units& side, bool left) {
    std::string text;
    Shape shape;
    int axes = 0;
    for (const std::vector<int>& unit : side) axes += static_cast<int>(unit.size());
    for (size_t i = 0; i < side.size();) {
      if (pick(0, 5) == 0 && axes++ < kMaxRank) {
        text += pick(0, 1) == 0 ? "1 " : "() ";
        shape.push_back(1);
      }
      const size_t group = static_cast<size_t>(pick(0, 2));
      if (group == 0 || (left && is_dots(side[i]))) {
        text += is_dots(side[i]) ? "... " : name(side[i][0]) + " ";
        for (int axis : side[i]) shape.push_back(sizes_[static_cast<size_t>(axis)]);
        ++i;
        continue;
      }
      text += "(";
      int64_t total = 1;
      bool first = true;
      for (size_t end = std::min(side.size(), i + group); i < end; ++i) {
        if (left && is_dots(side[i])) break;
        text += ' ';
        text += is_dots(side[i]) ? "..." : name(side[i][0]);
        for (int axis : side[i]) total *= sizes_[static_cast<size_t>(axis)];
        if (left && !first) given_.push_back(side[i][0]);
        first = false;
      }
      text += pick(0, 3) == 0 ? " 1) " : ")";
      shape.push_back(total);
    }
    return {text, shape};
  }

  std::mt19937 random_;
  std::vector<int64_t> sizes_;
  std::vector<int> dots_, given_;
  bool has_dots_ = false;
  Units left_, right_;
  std::vector<std::string> names_;
  std::string left_text_, right_text_;
  Shape left_shape_, right_shape_;
};

constexpr uint32_t kPatterns = 1500;

Tensor numbered(const Shape& shape, std::mt19937& random) {
  Values values(static_cast<size_t>(numel(shape)));
  std::iota(values.begin(), values.end(), 1.0);
  return with_random_strides(from_values(values, shape), random);
}

TEST(EinopsProperty, RearrangeMovesEveryElementAsTheModel) {
  for (uint32_t seed = 0; seed < kPatterns; ++seed) {
    RandomPattern pattern(PatternUse::rearrange, seed);
    SCOPED_TRACE(pattern.text());
    const Tensor x = numbered(pattern.left_shape(), pattern.random());
    const Tensor y = rearrange(x, pattern.text(), pattern.given());
    ASSERT_EQ(y.shape(), pattern.right_shape());
    ASSERT_EQ(y.to_vector<double>(),
              pattern.expected(x.to_vector<double>(), 0, [](double, double b) { return b; }));
  }
}

TEST(EinopsProperty, RepeatPutsEveryElementAsTheModel) {
  for (uint32_t seed = 0; seed < kPatterns; ++seed) {
    RandomPattern pattern(PatternUse::repeat, seed);
    SCOPED_TRACE(pattern.text());
    const Tensor x = numbered(pattern.left_shape(), pattern.random());
    const Tensor y = repeat(x, pattern.text(), pattern.given());
    ASSERT_EQ(y.shape(), pattern.right_shape());
    ASSERT_EQ(y.to_vector<double>(),
              pattern.expected(x.to_vector<double>(), 0, [](double, double b) { return b; }));
  }
}

TEST(EinopsProperty, ReduceFoldsEveryElementAsTheModel) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (uint32_t seed = 0; seed < kPatterns; ++seed) {
    RandomPattern pattern(PatternUse::reduce, seed);
    SCOPED_TRACE(pattern.text());
    const Tensor x = numbered(pattern.left_shape(), pattern.random());
    const Values values = x.to_vector<double>();
    const auto run = [&](Reduce how) { return reduce(x, pattern.text(), how, pattern.given()); };
    ASSERT_EQ(run(Reduce::sum).shape(), pattern.right_shape());
    const Values sums = pattern.expected(values, 0, [](double a, double b) { return a + b; });
    ASSERT_EQ(run(Reduce::sum).to_vector<double>(), sums);
    ASSERT_EQ(run(Reduce::max).to_vector<double>(),
              pattern.expected(values, -kInf, [](double a, double b) { return std::max(a, b); }));
    ASSERT_EQ(run(Reduce::min).to_vector<double>(),
              pattern.expected(values, kInf, [](double a, double b) { return std::min(a, b); }));
    if (values.size() <= 12) {  // 12! is exact
      ASSERT_EQ(run(Reduce::prod).to_vector<double>(),
                pattern.expected(values, 1, [](double a, double b) { return a * b; }));
    }
    const double part = static_cast<double>(sums.size()) / static_cast<double>(values.size());
    const Values means = run(Reduce::mean).to_vector<double>();
    for (size_t i = 0; i < means.size(); ++i) ASSERT_DOUBLE_EQ(means[i], sums[i] * part);
  }
}

// Random operands of small integers: all sums are exact, so every order gives the same bits.
class RandomEinsum {
 public:
  explicit RandomEinsum(uint32_t seed) : random_(seed) {
    for (int i = 0; i < kNames; ++i) sizes_.push_back(pick(0, 40) == 0 ? 0 : pick(1, 3));
    dots_ = pick(0, 2);
    for (int64_t i = 0; i < dots_; ++i) sizes_.push_back(pick(1, 3));
    seen_.assign(sizes_.size(), false);
    for (int64_t i = seed % 50 == 0 ? 9 : pick(1, 4); i > 0; --i) add_operand();
    write_output();
  }

  const std::string& text() const { return text_; }
  const std::vector<Tensor>& operands() const { return operands_; }
  Shape shape() const {
    Shape shape;
    for (size_t label : output_) shape.push_back(sizes_[label]);
    return shape;
  }

  Values expected() const {
    Values result(static_cast<size_t>(numel(shape())), 0);
    std::vector<Values> values;
    for (const Tensor& x : operands_) values.push_back(x.to_vector<double>());
    // A label that nothing uses is not summed over.
    std::vector<int64_t> sizes = sizes_;
    for (size_t label = 0; label < sizes.size(); ++label)
      sizes[label] = seen_[label] ? sizes[label] : 1;
    for_all_indices(sizes, [&](const std::vector<int64_t>& index) {
      double product = 1;
      for (size_t i = 0; i < values.size(); ++i) {
        int64_t position = 0;
        for (size_t axis = 0; axis < labels_[i].size(); ++axis) {
          const int64_t size = operands_[i].shape()[static_cast<int>(axis)];
          position = position * size + (size == 1 ? 0 : index[labels_[i][axis]]);
        }
        product *= values[i][static_cast<size_t>(position)];
      }
      int64_t place = 0;
      for (size_t label : output_) place = place * sizes_[label] + index[label];
      result[static_cast<size_t>(place)] += product;
    });
    return result;
  }

 private:
  static constexpr int kNames = 5;
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  static std::string name(size_t label) {
    return std::string(1, static_cast<char>('a' + label)) + "x";
  }

  void add_operand() {
    std::vector<size_t> labels;
    Shape shape;
    std::string text;
    const int64_t rank = pick(0, 3), dots_at = pick(0, 2) == 0 ? pick(0, rank) : -1;
    for (int64_t axis = 0; axis <= rank; ++axis) {
      if (axis == dots_at) add_dots(labels, shape, text);
      if (axis == rank) break;
      labels.push_back(static_cast<size_t>(pick(0, kNames - 1)));
      text += name(labels.back()) + " ";
      shape.push_back(sizes_[labels.back()]);
      seen_[labels.back()] = true;
    }
    Values values(static_cast<size_t>(numel(shape)));
    for (double& value : values) value = static_cast<double>(pick(-2, 2));
    operands_.push_back(with_random_strides(from_values(values, shape), random_));
    text_ += (labels_.empty() ? "" : ", ") + text;
    labels_.push_back(labels);
  }

  void add_dots(std::vector<size_t>& labels, Shape& shape, std::string& text) {
    text += "... ";
    any_dots_ = true;
    const int64_t here = pick(0, dots_);
    most_dots_ = std::max(most_dots_, here);
    for (int64_t i = dots_ - here; i < dots_; ++i) {
      const size_t label = static_cast<size_t>(kNames + i);
      labels.push_back(label);
      const bool one = pick(0, 2) == 0;
      shape.push_back(one ? 1 : sizes_[label]);
      if (!one) seen_[label] = true;
    }
  }

  void write_output() {
    for (int64_t i = dots_ - most_dots_; i < dots_; ++i) {  // axes of `...` that are 1 everywhere
      const size_t label = static_cast<size_t>(kNames + i);
      if (!seen_[label]) sizes_[label] = 1;
    }
    std::vector<size_t> order;
    for (size_t label = 0; label < kNames; ++label) {
      if (seen_[label] && pick(0, 1) == 0) order.push_back(label);
    }
    std::shuffle(order.begin(), order.end(), random_);
    const int64_t dots_at = any_dots_ && pick(0, 3) > 0 ? pick(0, std::ssize(order)) : -1;
    text_ += "-> ";
    for (int64_t i = 0; i <= std::ssize(order); ++i) {
      if (i == dots_at) {
        text_ += "... ";
        for (int64_t j = dots_ - most_dots_; j < dots_; ++j)
          output_.push_back(static_cast<size_t>(kNames + j));
      }
      if (i == std::ssize(order)) break;
      output_.push_back(order[static_cast<size_t>(i)]);
      text_ += name(output_.back()) + " ";
    }
  }

  std::mt19937 random_;
  std::vector<int64_t> sizes_;  // names, then the axes of `...`
  std::vector<bool> seen_;
  int64_t dots_ = 0, most_dots_ = 0;
  bool any_dots_ = false;
  std::string text_;
  std::vector<Tensor> operands_;
  std::vector<std::vector<size_t>> labels_;
  std::vector<size_t> output_;
};

TEST(EinopsProperty, EinsumAddsUpWhatNestedLoopsAddUp) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const RandomEinsum random(seed);
    SCOPED_TRACE(testing::Message() << seed << ": " << random.text());
    const Tensor y = einsum(random.text(), random.operands());
    ASSERT_EQ(y.shape(), random.shape());
    ASSERT_EQ(y.to_vector<double>(), random.expected());
  }
}

// Sizes where free axes that do not fold are looped over, or copied: more than 16 rows, 640 columns.
TEST(EinopsProperty, EinsumIsTheSameWhetherAnOperandIsCopiedOrLoopedOver) {
  for (int64_t columns : {3, 20, 700}) {
    const Tensor x = normal({3, 17, 5, 2}, RandomKey{.seed = 1}, {}, {.dtype = DType::f64});
    const Tensor w = normal({5, columns}, RandomKey{.seed = 2}, {}, {.dtype = DType::f64});
    const Tensor got = einsum("a b k c, k n -> a c b n", {x, w});
    const Tensor want = matmul(contiguous(permute(x, {0, 3, 1, 2})), w);
    EXPECT_EQ(got.shape(), want.shape());
    EXPECT_LT(max(abs(got - want)).item<double>(), 1e-13);
  }
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

// ---- messages ----------------------------------------------------------------------------------

struct Refusal {
  PatternUse use;
  const char* text;
  const char* message;
  const char* marked;  // what the caret is under
};

// The caret line points at `marked`, and is as long.
void expect_refusal(const std::string& error, const Refusal& refusal) {
  const std::string text = refusal.text, marked = refusal.marked;
  const size_t at = marked.empty() ? text.size() : text.find(marked);
  ASSERT_NE(at, std::string::npos) << marked;
  const std::string caret =
      std::string(at, ' ') + "^" + std::string(std::max<size_t>(1, marked.size()) - 1, '~');
  EXPECT_THAT(error, AllOf(StartsWith(std::string(to_text(refusal.use)) + ": "),
                           HasSubstr(refusal.message), EndsWith("\n  " + text + "\n  " + caret)));
}

TEST(EinopsParse, PointsAtWhatIsWrong) {
  using enum PatternUse;
  const Refusal refusals[] = {
      {rearrange, "a b", "'->' is missing", ""},
      {rearrange, "a, b -> a b", "a comma parts the operands of einsum", ","},
      {rearrange, "a ~ b -> a b", "has no meaning", "~"},
      {rearrange, "a .. -> a", "a single dot", "."},
      {rearrange, "(a b -> a b", "never closed", "("},
      {rearrange, "a b) -> a b", "closes nothing", ")"},
      {rearrange, "a -> a, ", "there is one output", ","},
      {rearrange, "a _ -> a", "'_' is no name", "_"},
      {rearrange, "a 2 -> a", "only 1 may stand here", "2"},
      {rearrange, "a 0 -> a", "size 0", "0"},
      {rearrange, "a 12345678901234567890 -> a", "too large", "12345678901234567890"},
      {rearrange, "a (... b) -> ... a b", "'...' in ( ) on the left", "..."},
      {rearrange, "a ... -> a", "'...' is lost", "..."},
      {rearrange, "heads d -> d", "\"heads\" is not on the right; reduce() takes", "heads"},
      {rearrange, "d -> d hedas", "\"hedas\" is not on the left; repeat() makes", "hedas"},
      {repeat, "heads d -> d", "not repeat()", "heads"},
      {reduce, "a -> a 2", "only 1 may stand here", "2"},
      {reduce, "a -> b", "\"b\" is not on the left", "b"},
      {repeat, "a 2 -> a", "only 1 may stand here", "2"},
      {einsum, "a (b c) -> a", "einsum has no ( )", "("},
      {einsum, "a 1 -> a", "no numbers", "1"},
      {einsum, "a, b -> a c", "\"c\" is not on the left", "c"},
      {einsum, "a -> ...", "'...' stands for nothing", "..."},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.text);
    const std::string error = error_of([&] { parse_pattern(refusal.use, refusal.text); });
    expect_refusal(error, refusal);
  }
  EXPECT_THAT(error_of([] { parse_pattern(rearrange, "((a) b) -> a b"); }),
              AllOf(HasSubstr("do not nest"), EndsWith("\n   ^")));
  EXPECT_THAT(error_of([] { parse_pattern(rearrange, "a -> a -> a"); }),
              AllOf(HasSubstr("second '->'"), EndsWith("\n         ^~")));
  EXPECT_THAT(error_of([] { parse_pattern(rearrange, "a b a -> a b"); }),
              AllOf(HasSubstr("\"a\" stands twice"), EndsWith("\n      ^")));
  EXPECT_THAT(error_of([] { parse_pattern(einsum, "a -> a a"); }),
              AllOf(HasSubstr("\"a\" stands twice"), EndsWith("\n         ^")));
  EXPECT_THAT(error_of([] { parse_pattern(einsum, "... a ... -> a"); }),
              AllOf(HasSubstr("may stand once"), EndsWith("\n        ^~~")));
  EXPECT_THAT(error_of([] { parse_pattern(rearrange, std::string(20'000, 'a')); }),
              HasSubstr("20000 characters"));
  EXPECT_THAT(error_of([] { parse_pattern(rearrange, "ä\t? -> "); }), EndsWith("^"));
}

TEST(Einops, PointsAtTheSizeThatDoesNotFit) {
  const Tensor x = ones({2, 6});
  const auto error = [&](const char* text, const std::vector<AxisSize>& sizes = {}) {
    return error_of([&] { rearrange(x, text, sizes); });
  };
  EXPECT_THAT(error("a b c -> a b c"),
              AllOf(HasSubstr("the left has 3 axes, and the tensor 2: shape [2, 6]"),
                    HasSubstr("\n  a b c -> a b c\n  ^~~~~")));
  EXPECT_THAT(error("a b ... c -> a b ... c"), HasSubstr("at least 3 axes"));
  EXPECT_THAT(error("a (b c) -> a b c"),
              AllOf(HasSubstr("neither \"b\" nor \"c\" has a size"), EndsWith("\n       ^")));
  EXPECT_THAT(error("a (b c) -> a b c", {{"b", 4}}),
              AllOf(HasSubstr("\"c\" has no size: 6 does not divide by 4 (shape [2, 6])"),
                    EndsWith("\n       ^")));
  EXPECT_THAT(error("a (b c) -> a b c", {{"b", 0}}), HasSubstr("does not divide by 0"));
  EXPECT_THAT(error("a (b c) -> a b c", {{"b", 4}, {"c", 2}}),
              AllOf(HasSubstr("this is 8, but the axis has size 6"), EndsWith("\n    ^~~~~")));
  EXPECT_THAT(error("a b -> b a", {{"a", 3}}),
              AllOf(HasSubstr("this is 3, but the axis has size 2"), EndsWith("\n  ^")));
  EXPECT_THAT(error("a () -> a"), HasSubstr("this is 1, but the axis has size 6"));
  EXPECT_THAT(error("a b -> b a", {{"c", 3}}),
              AllOf(HasSubstr("\"c\", which is not in the pattern"), EndsWith("a b -> b a")));
  EXPECT_THAT(error("a b -> b a", {{"a", -3}}), HasSubstr("the size given for \"a\" is -3"));
  EXPECT_THAT(error("a b -> b a", {{"a", 2}, {"a", 3}}), HasSubstr("two sizes, 2 and 3"));
  constexpr int64_t kHuge = int64_t{1} << 40;
  EXPECT_THAT(error("a (b c d) -> a b c d", {{"b", kHuge}, {"c", kHuge}}), HasSubstr("more than"));
  EXPECT_THAT(error("a b -> 1 1 1 1 1 1 1 a b"), HasSubstr("more than 8 axes"));
  EXPECT_THAT(error("(a b c d e) (f g h i) -> (a b c d e f g h i)",
                    {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"f", 1}, {"g", 1}, {"h", 1}}),
              HasSubstr("takes 9 axes apart"));
  EXPECT_THAT(error_of([&] { repeat(x, "a b -> a b c"); }),
              AllOf(HasSubstr("\"c\" is new and needs a size: {{\"c\", n}}"),
                    EndsWith("\n             ^")));
}

TEST(Einsum, PointsAtTheSizeThatDoesNotFit) {
  const Tensor x = ones({2, 6});
  EXPECT_THAT(error_of([&] {
                einsum("batch i, i o -> batch o", {x, ones({5, 3})});
              }),
              AllOf(HasSubstr("\"i\" is 5 in operand 1 [5, 3] and 6 in operand 0 [2, 6]"),
                    EndsWith("\n           ^")));
  EXPECT_THAT(error_of([&] { einsum("i i -> i", {x}); }), HasSubstr("\"i\" is 6 in operand 0"));
  EXPECT_THAT(error_of([&] {
                einsum("... i, ... i -> ...", {ones({2, 3, 4}), ones({5, 4})});
              }),
              AllOf(HasSubstr("an axis of '...' is 5 in operand 1"), EndsWith("\n         ^~~")));
  EXPECT_THAT(error_of([&] {
                einsum("a b c, a -> a", {x, x});
              }),
              AllOf(HasSubstr("operand 0 has 3 axes here, and 2 in its shape [2, 6]"),
                    EndsWith("\n  ^~~~~")));
  EXPECT_THAT(error_of([&] { einsum(", a b -> a", {x, x}); }), HasSubstr("operand 0 has 0 axes"));
  EXPECT_THAT(error_of([&] {
                einsum("a b -> a", {x, x});
              }),
              HasSubstr("the pattern has 1 operands, and 2 are given\n  a b -> a"));
  EXPECT_THAT(error_of([&] { einsum("a b -> a", {}); }), HasSubstr("no operands"));
  EXPECT_THAT(error_of([&] {
                einsum("a b, a b ->", {x, ones({2, 6}, {.dtype = DType::f64})});
              }),
              HasSubstr("operands are f32 and f64; cast one"));
  EXPECT_THAT(error_of([&] {
                einsum("a b ->", {ones({2, 6}, {.dtype = DType::boolean})});
              }),
              HasSubstr("bool; cast"));
  const Tensor six = ones({2, 2, 2, 2, 2, 2});
  EXPECT_THAT(error_of([&] {
                einsum("a b c d e f, g h i j k l -> a b c d e f g h i", {six, six});
              }),
              HasSubstr("more than 8 axes"));
}

// ---- any text at all -----------------------------------------------------------------------------

TEST(EinopsParse, EitherParsesOrThrowsError) {
  const std::string_view pieces[] = {"a",  "b",  "seq",   "...",      "(",  ")", ",",
                                     "->", " ",  "1",     "_",        "42", ".", "-",
                                     ">",  "\t", "(a b)", "\xc3\xa4", "()"};
  const std::string_view good[] = {"a (b c) ... -> ... c (a b)", "a b, b c, c d -> a d",
                                   "... (h 2) -> ... h", "h w -> h (w 3) 1"};
  std::mt19937 random(7);
  const auto pick = [&](size_t count) { return random() % count; };
  int parsed = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text;
    if (i % 2 == 0) {
      for (size_t n = pick(14); n > 0; --n) text += pieces[pick(std::size(pieces))];
    } else {
      text = good[pick(std::size(good))];
      for (size_t n = pick(4); n > 0 && !text.empty(); --n) {
        const size_t at = pick(text.size());
        switch (pick(3)) {
          case 0: text[at] = static_cast<char>(random()); break;
          case 1: text.erase(at, 1 + pick(3)); break;
          default: text.insert(at, pieces[pick(std::size(pieces))]);
        }
      }
    }
    const auto use = static_cast<PatternUse>(pick(4));
    try {
      const Pattern pattern = parse_pattern(use, text);
      ++parsed;
      ASSERT_TRUE(use == PatternUse::einsum || pattern.inputs.size() == 1) << text;
    } catch (const Error& error) {
      ASSERT_FALSE(std::string_view(error.what()).empty());
    }
  }
  EXPECT_GT(parsed, 10'000) << "the texts are not only nonsense";
}

}  // namespace
}  // namespace brrr
