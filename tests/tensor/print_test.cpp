#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/view/views.h"
#include "brrr/tensor/stream.h"
#include "brrr/tensor/tensor.h"

namespace brrr {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Print, ShowsValuesThenShapeDTypeAndDevice) {
  EXPECT_EQ(to_text(tensor({{1, 2}, {3, 4}})), "tensor([[1, 2], [3, 4]], f32[2, 2] on cpu)");
  EXPECT_EQ(to_text(tensor({-1, 20}, DType::i64)), "tensor([-1, 20], i64[2] on cpu)");
  EXPECT_EQ(to_text(tensor({0, 1}, DType::boolean)), "tensor([false, true], bool[2] on cpu)");
  EXPECT_EQ(to_text(tensor({-8, 7, 3}, DType::i4)), "tensor([-8, 7, 3], i4[3] on cpu)");
}

TEST(Print, ScalarsHaveNoBrackets) {
  EXPECT_EQ(to_text(tensor(5)), "tensor(5, f32[] on cpu)");
  EXPECT_EQ(to_text(tensor(0.6931)), "tensor(0.6931, f32[] on cpu)");
  EXPECT_EQ(to_text(tensor(1, DType::boolean)), "tensor(true, bool[] on cpu)");
}

TEST(Print, EmptyAndElementlessTensorsSaySo) {
  EXPECT_EQ(to_text(zeros({0, 3})), "tensor([], f32[0, 3] on cpu)");
  EXPECT_EQ(to_text(zeros({1000, 1000}, {.device = Device::null()})),
            "tensor(no elements, f32[1000, 1000] on null)");
  EXPECT_EQ(to_text(make_husk({.shape = {2}, .dtype = DType::f32})), "tensor(no elements, f32[2])");
  EXPECT_EQ(to_text(Tensor()), "tensor(undefined)");
}

TEST(Print, FloatsShareOneFormat) {
  EXPECT_EQ(to_text(tensor({1, 2.5, -0.125})), "tensor([1.0000, 2.5000, -0.1250], f32[3] on cpu)");
  EXPECT_EQ(to_text(tensor({1e-8, 1, 1e5}, DType::f64)),
            "tensor([1.0000e-08, 1.0000e+00, 1.0000e+05], f64[3] on cpu)");
  EXPECT_EQ(to_text(tensor({1e9, 0})), "tensor([1.0000e+09, 0.0000e+00], f32[2] on cpu)");
  EXPECT_EQ(to_text(tensor({0.5, 0})), "tensor([0.5000, 0.0000], f32[2] on cpu)")
      << "zero does not widen the range";
}

TEST(Print, SpecialValuesDoNotChangeTheFormatOfTheOthers) {
  EXPECT_EQ(to_text(tensor({1, kNan, kInfinity, -kInfinity})),
            "tensor([1, nan, inf, -inf], f32[4] on cpu)");
  EXPECT_EQ(to_text(tensor({0.5, -kNan})), "tensor([0.5000, nan], f32[2] on cpu)");
}

TEST(Print, IntegersKeepEveryDigit) {
  const std::vector<int64_t> values = {std::numeric_limits<int64_t>::max()};
  EXPECT_EQ(to_text(from_values(values, {1})), "tensor([9223372036854775807], i64[1] on cpu)");
}

TEST(Print, WhatDoesNotFitALineIsAlignedInColumns) {
  EXPECT_EQ(to_text(view(arange(95, 111), {4, 4})),
            "tensor([[ 95,  96,  97,  98],\n"
            "        [ 99, 100, 101, 102],\n"
            "        [103, 104, 105, 106],\n"
            "        [107, 108, 109, 110]], i64[4, 4] on cpu)");
}

TEST(Print, OuterAxesAreSetApartByEmptyLines) {
  EXPECT_EQ(to_text(view(arange(0.5, 16.5, 1, {}), {2, 2, 4})),
            "tensor([[[ 0.5000,  1.5000,  2.5000,  3.5000],\n"
            "         [ 4.5000,  5.5000,  6.5000,  7.5000]],\n"
            "\n"
            "        [[ 8.5000,  9.5000, 10.5000, 11.5000],\n"
            "         [12.5000, 13.5000, 14.5000, 15.5000]]], f32[2, 2, 4] on cpu)");
}

TEST(Print, LongRowsWrapBeforeColumn80) {
  const std::string text = to_text(arange(100));
  EXPECT_THAT(text, StartsWith("tensor([ 0,  1,  2,"));
  EXPECT_THAT(text, HasSubstr(",\n        18, 19,"));  // aligned below the first element
  EXPECT_THAT(text, EndsWith("99], i64[100] on cpu)"));
  EXPECT_THAT(text, Not(HasSubstr("...")));
  const std::string values = text.substr(0, text.find(']'));
  for (size_t start = 0; start < values.size();) {
    const size_t end = std::min(values.find('\n', start), values.size());
    EXPECT_LE(end - start, 80U);
    start = end + 1;
  }
}

TEST(Print, LargeTensorsShowTheEndsOfLongAxes) {
  EXPECT_EQ(to_text(arange(1001)), "tensor([0, 1, 2, ..., 998, 999, 1000], i64[1001] on cpu)");
  EXPECT_EQ(to_text(view(arange(10'000), {100, 100})),
            "tensor([[   0,    1,    2, ...,   97,   98,   99],\n"
            "        [ 100,  101,  102, ...,  197,  198,  199],\n"
            "        [ 200,  201,  202, ...,  297,  298,  299],\n"
            "        ...,\n"
            "        [9700, 9701, 9702, ..., 9797, 9798, 9799],\n"
            "        [9800, 9801, 9802, ..., 9897, 9898, 9899],\n"
            "        [9900, 9901, 9902, ..., 9997, 9998, 9999]], i64[100, 100] on cpu)");
  EXPECT_THAT(to_text(zeros({6, 500})), Not(HasSubstr("...,\n"))) << "axes of 6 are shown whole";
}

TEST(Print, ElidedValuesDoNotChooseTheFormat) {
  const Tensor x = ones({2000});
  x[1000].fill(1e-20);
  EXPECT_EQ(to_text(x), "tensor([1, 1, 1, ..., 1, 1, 1], f32[2000] on cpu)");
}

TEST(Print, ViewsShowTheirOwnElements) {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(to_text(transpose(x)), "tensor([[1, 4], [2, 5], [3, 6]], f32[3, 2] on cpu)");
  EXPECT_EQ(to_text(expand(x[1], {2, 3})), "tensor([[4, 5, 6], [4, 5, 6]], f32[2, 3] on cpu)");
  EXPECT_EQ(to_text(slice(x, 1, {0, 3, 2})), "tensor([[1, 3], [4, 6]], f32[2, 2] on cpu)");
}

TEST(Print, StreamsTakeTheSameText) {
  std::ostringstream out;
  const Tensor x = tensor({{1, 2}, {3, 4}});
  out << x << ' ' << x.shape() << ' ' << x.dtype() << ' ' << Tensor();
  EXPECT_EQ(out.str(), "tensor([[1, 2], [3, 4]], f32[2, 2] on cpu) [2, 2] f32 tensor(undefined)");
}

TEST(Print, TakesPartInErrorMessages) {
  EXPECT_EQ(join_text("got ", tensor({1, 2})), "got tensor([1, 2], f32[2] on cpu)");
}

}  // namespace
}  // namespace brrr
