// Views against a model that knows nothing of strides: for every index tuple of a view it holds the
// number of the element shown there, computed tuple by tuple from the meaning of each operation.
// Random chains of operations run on both; then writes through one view must be seen through all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Values = std::vector<int64_t>;

// Calls visit(index) for every index tuple of `shape` in row-major order.
template <typename Visit>
void for_each_index(const Shape& shape, Visit&& visit) {
  const int64_t count = numel(shape);
  for (int64_t flat = 0; flat < count; ++flat) {
    Shape index(shape.size(), 0);
    int64_t rest = flat;
    for (int axis = shape.size() - 1; axis >= 0; --axis) {
      index[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    visit(index);
  }
}

struct Model {
  Shape shape;
  Values elements;  // of every index tuple, in row-major order

  int64_t at(const Shape& index) const {
    int64_t flat = 0;
    for (int axis = 0; axis < shape.size(); ++axis) flat = flat * shape[axis] + index[axis];
    return elements[static_cast<size_t>(flat)];
  }

  // The model whose element at `index` is the one of this model at `source(index)`.
  Model remap(const Shape& to, const std::function<Shape(Shape)>& source) const {
    Model result{to, {}};
    for_each_index(to, [&](const Shape& index) { result.elements.push_back(at(source(index))); });
    return result;
  }

  // Whether positions that grow by a fixed step along each axis can tell these elements: then, and
  // only then, a view needs no copy.
  bool is_strided() const {
    if (elements.empty()) return true;
    Strides strides(shape.size(), 0);
    for (int axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 1) continue;
      Shape unit(shape.size(), 0);
      unit[axis] = 1;
      strides[axis] = at(unit) - elements[0];
    }
    bool strided = true;
    for_each_index(shape, [&](const Shape& index) {
      int64_t position = elements[0];
      for (int axis = 0; axis < shape.size(); ++axis) position += index[axis] * strides[axis];
      strided &= position == at(index);
    });
    return strided;
  }

  bool shows_each_element_once() const {
    return std::set<int64_t>(elements.begin(), elements.end()).size() == elements.size();
  }
};

struct Pair {
  Tensor tensor;
  Model model;
};

class Chain {
 public:
  explicit Chain(uint32_t seed) : random_(seed) {
    const Shape shape = random_shape();
    for (int64_t i = 0; i < numel(shape); ++i) memory_.push_back(i);
    views_.push_back({from_values(memory_, shape), Model{shape, memory_}});
  }

  void grow(int steps) {
    for (int step = 0; step < steps; ++step) {
      const Pair& from = views_[static_cast<size_t>(pick(0, std::ssize(views_) - 1))];
      if (std::optional<Pair> next = random_view(from)) {
        check_positions(*next);
        ASSERT_TRUE(shares_storage(next->tensor, views_[0].tensor)) << "a view never copies";
        views_.push_back(std::move(*next));
      }
    }
  }

  void check_values() const {
    for (const Pair& pair : views_) {
      Values expected;
      for (int64_t element : pair.model.elements) {
        expected.push_back(memory_[static_cast<size_t>(element)]);
      }
      ASSERT_EQ(pair.tensor.to_vector<int64_t>(), expected) << to_text(pair.tensor.type());
      // Kernels walk strides with loops of their own, so a copy is a second opinion.
      ASSERT_EQ(clone(pair.tensor).to_vector<int64_t>(), expected) << to_text(pair.tensor.type());
    }
  }

  // contiguous and reshape give x itself, or a view, wherever that shows the right elements.
  void check_copies_only_where_needed() {
    for (const Pair& pair : views_) {
      const Tensor packed = contiguous(pair.tensor);
      ASSERT_TRUE(packed.is_contiguous());
      ASSERT_EQ(packed.to_vector<int64_t>(), pair.tensor.to_vector<int64_t>());
      ASSERT_EQ(shares_storage(packed, pair.tensor), pair.tensor.is_contiguous());

      const Model wanted{random_factors(numel(pair.model.shape)), pair.model.elements};
      const Tensor reshaped = reshape(pair.tensor, wanted.shape);
      ASSERT_EQ(reshaped.shape(), wanted.shape);
      ASSERT_EQ(reshaped.to_vector<int64_t>(), pair.tensor.to_vector<int64_t>());
      ASSERT_EQ(shares_storage(reshaped, pair.tensor), wanted.is_strided())
          << to_text(pair.tensor.type()) << " strides " << to_text(pair.tensor.strides()) << " as "
          << to_text(wanted.shape);
      if (wanted.is_strided()) {
        ASSERT_NO_THROW(view(pair.tensor, wanted.shape));
      } else {
        ASSERT_THAT([&] { view(pair.tensor, wanted.shape); },
                    ThrowsMessage<Error>(AllOf(HasSubstr(to_text(pair.tensor.shape())),
                                               HasSubstr(to_text(pair.tensor.strides())),
                                               HasSubstr(to_text(wanted.shape)))));
      }
    }
  }

  void write_one_element() {
    const Pair& pair = views_[static_cast<size_t>(pick(0, std::ssize(views_) - 1))];
    if (pair.model.elements.empty()) return;
    Tensor element = pair.tensor;
    Shape index;
    for (int64_t size : pair.model.shape) {
      index.push_back(pick(0, size - 1));
      element = element[index.back()];
    }
    const int64_t value = pick(-1000, 1000);
    element.fill(static_cast<double>(value));
    memory_[static_cast<size_t>(pair.model.at(index))] = value;
  }

  void write_whole_view() {
    const Pair& pair = views_[static_cast<size_t>(pick(0, std::ssize(views_) - 1))];
    Values values;
    for (size_t i = 0; i < pair.model.elements.size(); ++i) values.push_back(pick(-1000, 1000));
    const Tensor source = from_values(values, pair.model.shape);
    const auto& strides = pair.tensor.strides();
    bool repeats = false;
    for (int axis = 0; axis < pair.tensor.rank(); ++axis) {
      repeats |= strides[axis] == 0 && pair.model.shape[axis] > 1;
    }
    if (repeats) {
      ASSERT_THAT([&] { pair.tensor.copy_from(source); },
                  ThrowsMessage<Error>(HasSubstr("more than once")));
    } else if (pair.model.shows_each_element_once()) {
      pair.tensor.copy_from(source);
      for (size_t i = 0; i < values.size(); ++i) {
        memory_[static_cast<size_t>(pair.model.elements[i])] = values[i];
      }
    }
  }

  // Copies one range of an axis onto another of the same length that may overlap it: the result is
  // as if everything were read before anything is written.
  void move_a_range() {
    const Pair& pair = views_[static_cast<size_t>(pick(0, std::ssize(views_) - 1))];
    if (pair.model.elements.empty() || pair.tensor.rank() == 0) return;
    if (!pair.model.shows_each_element_once()) return;
    const int axis = static_cast<int>(pick(0, pair.tensor.rank() - 1));
    const int64_t size = pair.model.shape[axis], length = pick(1, size);
    const int64_t to = pick(0, size - length), from = pick(0, size - length);
    const Pair target = sliced(pair, axis, {to, to + length, 1});
    const Pair source = sliced(pair, axis, {from, from + length, 1});
    const Values read = source.tensor.to_vector<int64_t>();
    target.tensor.copy_from(source.tensor);
    for (size_t i = 0; i < read.size(); ++i) {
      memory_[static_cast<size_t>(target.model.elements[i])] = read[i];
    }
  }

 private:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  Shape random_shape() {
    Shape shape;
    const int64_t rank = pick(0, 4);
    for (int64_t axis = 0; axis < rank; ++axis) shape.push_back(pick(0, 19) == 0 ? 0 : pick(1, 5));
    return shape;
  }

  // A random shape of `count` elements.
  Shape random_factors(int64_t count) {
    Shape shape;
    int64_t rest = count;
    for (int64_t axes = pick(0, 3); axes > 0; --axes) {
      Values divisors;
      for (int64_t d = 1; d <= std::max<int64_t>(rest, 1); ++d) {
        if (rest % d == 0) divisors.push_back(d);
      }
      shape.push_back(divisors[static_cast<size_t>(pick(0, std::ssize(divisors) - 1))]);
      rest /= shape.back();
    }
    if (rest != 1 || pick(0, 1) == 0) shape.insert(static_cast<int>(pick(0, shape.size())), rest);
    return shape;
  }

  static Pair sliced(const Pair& from, int axis, Slice range) {  // bounds inside the axis
    Shape shape = from.model.shape;
    shape[axis] = (range.stop - range.start + range.step - 1) / range.step;
    return {slice(from.tensor, axis, range), from.model.remap(shape, [&](Shape index) {
              index[axis] = range.start + index[axis] * range.step;
              return index;
            })};
  }

  // The axis as callers may spell it: counted from the front or from the back.
  int64_t spelled(int axis, int rank) { return pick(0, 1) == 0 ? axis : axis - rank; }

  std::optional<Pair> random_view(const Pair& from) {
    const int rank = from.tensor.rank();
    if (rank == 0 || (rank < 5 && pick(0, 9) == 0)) return random_unsqueeze(from);
    switch (pick(0, 7)) {
      case 0: return random_transpose(from);
      case 1: return random_permute(from);
      case 2: return random_slice(from);
      case 3: return random_select(from);
      case 4: return random_expand(from);
      case 5: return random_squeeze(from);
      case 6: return random_unfold(from);
      default: return random_reshape(from);
    }
  }

  Pair random_unsqueeze(const Pair& from) {
    const int rank = from.tensor.rank(), axis = static_cast<int>(pick(0, rank));
    Shape shape = from.model.shape;
    shape.insert(axis, 1);
    return {unsqueeze(from.tensor, spelled(axis, rank + 1)),
            from.model.remap(shape, [axis](Shape index) {
              index.erase(axis);
              return index;
            })};
  }

  Pair random_transpose(const Pair& from) {
    const int rank = from.tensor.rank();
    const int a = static_cast<int>(pick(0, rank - 1)), b = static_cast<int>(pick(0, rank - 1));
    Shape shape = from.model.shape;
    std::swap(shape[a], shape[b]);
    return {transpose(from.tensor, spelled(a, rank), spelled(b, rank)),
            from.model.remap(shape, [a, b](Shape index) {
              std::swap(index[a], index[b]);
              return index;
            })};
  }

  Pair random_permute(const Pair& from) {
    const int rank = from.tensor.rank();
    Axes axes;
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
    std::shuffle(axes.begin(), axes.end(), random_);
    Shape shape;
    for (int64_t axis : axes) shape.push_back(from.model.shape[static_cast<int>(axis)]);
    return {permute(from.tensor, axes), from.model.remap(shape, [&](const Shape& index) {
              Shape source = index;
              for (int i = 0; i < rank; ++i) source[static_cast<int>(axes[i])] = index[i];
              return source;
            })};
  }

  Pair random_slice(const Pair& from) {
    const int axis = static_cast<int>(pick(0, from.tensor.rank() - 1));
    const int64_t size = from.model.shape[axis], start = pick(0, size);
    return sliced(from, axis, {start, pick(start, size), pick(1, 3)});
  }

  std::optional<Pair> random_select(const Pair& from) {
    const int rank = from.tensor.rank(), axis = static_cast<int>(pick(0, rank - 1));
    const int64_t size = from.model.shape[axis];
    if (size == 0) return std::nullopt;
    const int64_t given = pick(-size, size - 1);
    Shape shape = from.model.shape;
    shape.erase(axis);
    return Pair{select(from.tensor, spelled(axis, rank), given),
                from.model.remap(shape, [&](Shape index) {
                  index.insert(axis, given < 0 ? given + size : given);
                  return index;
                })};
  }

  std::optional<Pair> random_expand(const Pair& from) {
    const int rank = from.tensor.rank();
    Shape shape = from.model.shape, given = shape;
    for (int axis = 0; axis < rank; ++axis) {
      if (shape[axis] == 1) {
        given[axis] = shape[axis] = pick(0, 3);
      } else if (pick(0, 2) == 0) {
        given[axis] = -1;  // keeps the size
      }
    }
    const int added = rank < 5 ? static_cast<int>(pick(0, 1)) : 0;
    if (added == 1) {
      shape.insert(0, pick(1, 3));
      given.insert(0, shape[0]);
    }
    if (numel(shape) > 500) return std::nullopt;
    return Pair{expand(from.tensor, given), from.model.remap(shape, [&](const Shape& index) {
                  Shape source;
                  for (int axis = 0; axis < rank; ++axis) {
                    source.push_back(from.model.shape[axis] == 1 ? 0 : index[axis + added]);
                  }
                  return source;
                })};
  }

  std::optional<Pair> random_squeeze(const Pair& from) {
    const int rank = from.tensor.rank(), axis = static_cast<int>(pick(0, rank - 1));
    if (from.model.shape[axis] != 1) return std::nullopt;
    Shape shape = from.model.shape;
    shape.erase(axis);
    return Pair{squeeze(from.tensor, spelled(axis, rank)),
                from.model.remap(shape, [axis](Shape index) {
                  index.insert(axis, 0);
                  return index;
                })};
  }

  std::optional<Pair> random_unfold(const Pair& from) {
    const int rank = from.tensor.rank(), axis = static_cast<int>(pick(0, rank - 1));
    const int64_t size = pick(0, from.model.shape[axis]), step = pick(1, 3);
    Shape shape = from.model.shape;
    shape[axis] = (from.model.shape[axis] - size) / step + 1;
    shape.push_back(size);
    if (rank >= 5 || numel(shape) > 500) return std::nullopt;
    return Pair{unfold(from.tensor, spelled(axis, rank), size, step),
                from.model.remap(shape, [&](Shape index) {
                  index[axis] = index[axis] * step + index.back();
                  index.pop_back();
                  return index;
                })};
  }

  std::optional<Pair> random_reshape(const Pair& from) {
    const Model wanted{random_factors(numel(from.model.shape)), from.model.elements};
    if (!wanted.is_strided()) return std::nullopt;
    return Pair{view(from.tensor, wanted.shape), wanted};
  }

  // The base lies contiguous from position 0, so a position in storage is the element's number.
  static void check_positions(const Pair& pair) {
    ASSERT_EQ(pair.tensor.shape(), pair.model.shape);
    Values positions;
    for_each_element(pair.tensor.layout(),
                     [&](int64_t position) { positions.push_back(position); });
    ASSERT_EQ(positions, pair.model.elements) << to_text(pair.tensor.type());
  }

  std::mt19937 random_;
  Values memory_;            // what the elements hold
  std::vector<Pair> views_;  // the first is the base
};

constexpr uint32_t kChains = 4000;

TEST(ViewsProperty, ChainsOfViewsShowTheElementsOfTheModel) {
  for (uint32_t seed = 0; seed < kChains; ++seed) {
    SCOPED_TRACE(seed);
    Chain chain(seed);
    chain.grow(8);
    chain.check_values();
    if (HasFatalFailure()) return;
  }
}

TEST(ViewsProperty, CopiesAreMadeOnlyWhereStridesCannotTell) {
  for (uint32_t seed = 0; seed < kChains / 2; ++seed) {
    SCOPED_TRACE(seed);
    Chain chain(seed + 10'000);
    chain.grow(8);
    chain.check_copies_only_where_needed();
    if (HasFatalFailure()) return;
  }
}

TEST(ViewsProperty, WritesThroughOneViewAreSeenThroughAll) {
  for (uint32_t seed = 0; seed < kChains / 2; ++seed) {
    SCOPED_TRACE(seed);
    Chain chain(seed + 20'000);
    chain.grow(6);
    for (int write = 0; write < 3; ++write) {
      chain.write_one_element();
      chain.write_whole_view();
      chain.move_a_range();
    }
    chain.check_values();
    if (HasFatalFailure()) return;
  }
}

// The cases of lecture 2, by hand.
class LectureViews : public ::testing::Test {
 protected:
  Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  using Floats = std::vector<float>;
};

TEST_F(LectureViews, RowColumnReshapedAndTransposedShareTheElements) {
  const Tensor row = x[0], column = select(x, 1, 1), reshaped = view(x, {3, 2}), t = transpose(x);
  EXPECT_EQ(row.to_vector<float>(), (Floats{1, 2, 3}));
  EXPECT_EQ(column.to_vector<float>(), (Floats{2, 5}));
  EXPECT_EQ(reshaped.shape(), (Shape{3, 2}));
  EXPECT_EQ(reshaped.to_vector<float>(), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(t.shape(), (Shape{3, 2}));
  EXPECT_EQ(t.to_vector<float>(), (Floats{1, 4, 2, 5, 3, 6}));
  for (const Tensor& seen : {row, column, reshaped, t}) EXPECT_TRUE(shares_storage(x, seen));
}

TEST_F(LectureViews, AWriteIsVisibleThroughEveryView) {
  const Tensor reshaped = view(x, {3, 2}), t = transpose(x);
  x[0][0].fill(100);
  EXPECT_EQ(reshaped.to_vector<float>(), (Floats{100, 2, 3, 4, 5, 6}));
  EXPECT_EQ(t[0].to_vector<float>(), (Floats{100, 4}));
}

TEST_F(LectureViews, ATransposedTensorCannotBeViewedWithoutACopy) {
  const Tensor t = transpose(x);
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_THAT(
      [&] {
        view(t, {2, 3});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("[3, 2]"), HasSubstr("strides [1, 3]"),
                                 HasSubstr("[2, 3]"), HasSubstr("contiguous()"))));
  const Tensor copied = view(contiguous(t), {2, 3});
  EXPECT_FALSE(shares_storage(copied, x));
  EXPECT_EQ(copied.to_vector<float>(), (Floats{1, 4, 2, 5, 3, 6}));
  copied[0][0].fill(-1);
  EXPECT_EQ(x[0][0].item<float>(), 1);
}

TEST_F(LectureViews, ViewsCostNoBytesAndNoFlopsAndCopiesCostBytes) {
  const Bytes before = ledger().live();
  CostCounter counter;
  const Tensor views[] = {x[0],
                          select(x, 1, 1),
                          view(x, {3, 2}),
                          transpose(x),
                          slice(x, 1, {0, 2}),
                          expand(x, {5, 2, 3}),
                          permute(x, {1, 0}),
                          unfold(x, 1, 2, 1),
                          reshape(x, {-1})};
  EXPECT_EQ(ledger().live(), before);
  EXPECT_EQ(counter.total(), Cost{});
  const Tensor copied = contiguous(views[3]);
  EXPECT_EQ(ledger().live() - before, 24_B);
  EXPECT_EQ(counter.total(), (Cost{.flops = 0, .bytes_read = 24, .bytes_written = 24}));
}

TEST_F(LectureViews, SplitCutsAnAxisIntoViews) {
  const std::vector<Tensor> parts = split(x, 2, 1);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].to_vector<float>(), (Floats{1, 2, 4, 5}));
  EXPECT_EQ(parts[1].to_vector<float>(), (Floats{3, 6})) << "the last part may be smaller";
  EXPECT_TRUE(shares_storage(parts[1], x));
  EXPECT_EQ(split(x, std::vector<int64_t>{0, 2}, 0)[1].shape(), (Shape{2, 3}));
  EXPECT_THAT(
      [&] {
        split(x, std::vector<int64_t>{1, 2}, 0);
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("split"), HasSubstr("3"), HasSubstr("[2, 3]"))));
  EXPECT_THROW(split(x, 0), Error);
}

}  // namespace
}  // namespace brrr
