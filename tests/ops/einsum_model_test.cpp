// Einsum of random patterns and operands, against nested loops.
#include <gtest/gtest.h>

#include "brrr/brrr.h"
#include "ops/einops_model.h"

namespace brrr {
namespace {

using Values = std::vector<double>;

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

}  // namespace
}  // namespace brrr
