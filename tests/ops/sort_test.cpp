#include "brrr/ops/index/sort.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/autodiff/grad.h"
#include "brrr/base/thread_pool.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/index/index_select.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/outer.h"
#include "brrr/ops/view/pad_roll.h"
#include "brrr/ops/view/update_slice.h"
#include "brrr/ops/view/views.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }

TEST(Sort, KeepsTheOrderOfEquals) {
  const Tensor x = tensor({2, 1, 2, 1, 2});
  EXPECT_THAT(values(sort(x).indices), ElementsAre(1, 3, 0, 2, 4));
  EXPECT_THAT(values(sort(x, 0, Order::descending).indices), ElementsAre(0, 2, 4, 1, 3));
  EXPECT_THAT(values(argsort(tensor({0.0, -0.0, 0.0}))), ElementsAre(0, 1, 2));
}

TEST(Sort, PutsNanAboveInfinity) {
  const Tensor x = tensor({NAN, 1, INFINITY, -INFINITY, -NAN});
  EXPECT_THAT(values(sort(x).values), ElementsAre(-INFINITY, 1, INFINITY, IsNan(), IsNan()));
  EXPECT_THAT(values(sort(x).indices), ElementsAre(3, 1, 2, 0, 4));
  EXPECT_THAT(values(argsort(x, 0, Order::descending)), ElementsAre(0, 4, 2, 1, 3));
  EXPECT_THAT(values(topk(x, 2).indices), ElementsAre(0, 4));
  EXPECT_THAT(values(topk(x, 2, 0, Pick::smallest).indices), ElementsAre(3, 1));
}

TEST(Sort, OrdersTheWholeRangeOfIntegers) {
  const Tensor x = from_values(std::vector<int64_t>{0, INT64_MAX, INT64_MIN, -1}, {4});
  EXPECT_THAT(sort(x).values.to_vector<int64_t>(), ElementsAre(INT64_MIN, -1, 0, INT64_MAX));
  EXPECT_EQ(sort(x).indices.dtype(), DType::i64);
}

TEST(Sort, GradientReturnsToWhereEachElementWas) {
  const Tensor x = tensor({3, 1, 2});
  x.require_grad();
  backward(sort(x).values, {.seed = tensor({10, 20, 30})});
  EXPECT_THAT(values(x.grad()), ElementsAre(30, 10, 20));
  x.clear_grad();
  backward(topk(x, 2).values, {.seed = tensor({10, 20})});
  EXPECT_THAT(values(x.grad()), ElementsAre(10, 0, 20));
  EXPECT_FALSE(sort(x).indices.requires_grad());
}

TEST(Sort, RefusesWithTheReason) {
  EXPECT_THAT(error_of([] {
                topk(zeros({2, 5}), 7);
              }),
              HasSubstr("topk: k is 7 and axis 1 of shape [2, 5] has 5 elements; use 0 <= k <= 5"));
  EXPECT_THAT(error_of([] { sort(zeros({2}), 1); }), HasSubstr("sort: axis 1 is out of range"));
  EXPECT_THAT(error_of([] { sort(zeros({})); }), HasSubstr("a scalar has no axes"));
}

TEST(SortThreads, GiveTheSameIndices) {
  const Tensor x = cast(sample_values({50, 1000}, 1), DType::bf16);  // many equals
  std::vector<double> sorted, top;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    if (threads == 1) sorted = values(argsort(x)), top = values(topk(x, 30, 0).indices);
    EXPECT_EQ(values(argsort(x)), sorted);
    EXPECT_EQ(values(topk(x, 30, 0).indices), top);
  }
  set_num_threads(available_cores());
}

TEST(UpdateSlice, WritesIntoACopy) {
  const Tensor x = tensor({1, 2, 3, 4}), source = tensor({8, 9});
  const Tensor position = tensor({2}, DType::i64);
  EXPECT_THAT(values(update_slice(x, 0, source, position)), ElementsAre(1, 2, 8, 9));
  EXPECT_THAT(values(x), ElementsAre(1, 2, 3, 4));
}

TEST(UpdateSlice, GradientHasAHoleWhereTheSourceWent) {
  const Tensor x = tensor({1, 2, 3, 4}), source = tensor({8, 9});
  x.require_grad();
  source.require_grad();
  backward(update_slice(x, 0, source, tensor(1, DType::i64)), {.seed = tensor({1, 2, 3, 4})});
  EXPECT_THAT(values(x.grad()), ElementsAre(1, 0, 0, 4));
  EXPECT_THAT(values(source.grad()), ElementsAre(2, 3));
}

TEST(UpdateSlice, RefusesWithTheReason) {
  const auto at = [](int64_t position) {
    return error_of([&] {
      update_slice(zeros({2, 5}), 1, zeros({2, 3}),
                   tensor(static_cast<double>(position), DType::i64));
    });
  };
  EXPECT_EQ(at(2), "no error");
  EXPECT_THAT(at(3), HasSubstr("update_slice: position 3 puts a source of size 3 outside axis 1 of "
                               "shape [2, 5]; use 0 <= position <= 2"));
  EXPECT_THAT(at(-1), HasSubstr("update_slice: position -1"));
  EXPECT_THAT(error_of([] { update_slice(zeros({2}), 0, zeros({3}), tensor(0, DType::i64)); }),
              HasSubstr("a source of shape [3] does not fit into shape [2]; only axis 0 may be "
                        "smaller"));
  EXPECT_THAT(
      error_of([] {
        update_slice(zeros({2}), 0, zeros({1}), tensor({0, 1}));
      }),
      HasSubstr("the position is f32 of shape [2]; it must be one i64, of shape [] or [1]"));
}

TEST(IndexSelect, WalksAnyLayout) {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}), ids = tensor({2, 0, 2}, DType::i64);
  EXPECT_THAT(values(index_select(x, 1, ids)), ElementsAre(3, 1, 3, 6, 4, 6));
  EXPECT_THAT(values(index_select(transpose(x), 0, ids)), ElementsAre(3, 6, 1, 4, 3, 6));
  EXPECT_THAT(values(index_select(expand(tensor({1, 2, 3}), {2, 3}), 1, ids)),
              ElementsAre(3, 1, 3, 3, 1, 3));
}

TEST(IndexSelect, NamesTheIdThatIsOutOfRange) {
  EXPECT_THAT(error_of([] {
                index_select(zeros({3, 2}), 0, tensor({0, 3}, DType::i64));
              }),
              HasSubstr("index_select: index 3 at position [1] is out of range for axis 0 of shape "
                        "[3, 2]; use 0 <= index < 3"));
  EXPECT_THAT(error_of([] {
                one_hot(tensor({1, -1}, DType::i64), 4);
              }),
              HasSubstr("one_hot: index -1 at position [1]"));
  EXPECT_THAT(error_of([] {
                index_select(zeros({3}), 0, zeros({2, 2}, {DType::i64}));
              }),
              HasSubstr("ids of shape [2, 2] must have one axis"));
}

TEST(Rearrange, RefusesWithTheReason) {
  EXPECT_THAT(error_of([] {
                pad(zeros({2, 3}), {1}, {1});
              }),
              HasSubstr("pad: widths [1] before and [1] after do not fit shape [2, 3]; give one of "
                        "each for every axis"));
  EXPECT_THAT(error_of([] { pad(zeros({2}), {-1}, {0}); }),
              HasSubstr("pad: widths -1 before and 0 after on axis 0; use widths >= 0"));
  EXPECT_THAT(error_of([] {
                flip(zeros({2, 3}), {1, -1});
              }),
              HasSubstr("flip: axis 1 is named twice in [1, -1]"));
  EXPECT_THAT(error_of([] {
                roll(zeros({2, 3}), {1}, {0, 1});
              }),
              HasSubstr("roll: 1 shifts for 2 axes ([1] and [0, 1])"));
  EXPECT_THAT(error_of([] {
                stack({zeros({2}), zeros({3})});
              }),
              HasSubstr("stack: part 1 has shape [3] and part 0 has shape [2]"));
  EXPECT_THAT(error_of([] { stack({}); }), HasSubstr("stack: no parts given"));
  EXPECT_THAT(error_of([] {
                outer(zeros({2, 2}), zeros({2}));
              }),
              HasSubstr("outer: operands of shape [2, 2] and [2] must be vectors"));
}

}  // namespace
}  // namespace brrr
