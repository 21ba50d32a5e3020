// Rearrange, repeat and reduce by random patterns, against a model that goes index by index.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <tuple>

#include "brrr/brrr.h"
#include "brrr/ops/einops/einops_parse.h"
#include "ops/einops_model.h"

namespace brrr {
namespace {

using Values = std::vector<double>;

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

}  // namespace
}  // namespace brrr
