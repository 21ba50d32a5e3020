// Elementwise ops through the front door: values, broadcasting, dtypes and writes. That every op
// agrees with its definition on every dtype is the sweep's business, not that of this file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/view/triangle.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using enum DType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kUnit = std::numeric_limits<float>::epsilon();

using Floats = std::vector<float>;
Floats floats(const Tensor& x) { return x.to_vector<float>(); }
std::vector<int64_t> ints(const Tensor& x) { return x.to_vector<int64_t>(); }

// ---- the numbers of lecture 2 --------------------------------------------------------------------

TEST(Elementwise, LectureNumbersOnOneFourNine) {
  const Tensor x = tensor({1, 4, 9});
  EXPECT_EQ(floats(pow(x, 2)), (Floats{1, 16, 81}));
  EXPECT_EQ(floats(sqrt(x)), (Floats{1, 2, 3}));
  EXPECT_THAT(floats(rsqrt(x)), ElementsAre(FloatEq(1), FloatEq(1.0F / 2), FloatEq(1.0F / 3)));
  const Floats doubled = {2, 8, 18};
  EXPECT_EQ(floats(x + x), doubled);
  EXPECT_EQ(floats(x * 2), doubled);
  EXPECT_EQ(floats(x / 0.5), doubled);
}

TEST(Elementwise, LectureTriuOfOnes) {
  EXPECT_EQ(floats(triu(ones({3, 3}))), (Floats{1, 1, 1, 0, 1, 1, 0, 0, 1}));
}

TEST(Elementwise, FunctionsOfRealNumbersPromoteIntegers) {
  const Tensor root = sqrt(tensor({1, 4, 9}, i64));
  EXPECT_EQ(root.dtype(), f32);
  EXPECT_EQ(floats(root), (Floats{1, 2, 3}));
  EXPECT_EQ(exp(tensor({0, 1}, boolean)).dtype(), f32);
  EXPECT_EQ((tensor({1, 2}, i32) / tensor({2, 2}, i32)).dtype(), f32) << "true division";
  EXPECT_EQ(floats(tensor({1, 3}, i32) / 2), (Floats{0.5, 1.5}));
  EXPECT_EQ(sqrt(tensor({4}, bf16)).dtype(), bf16);
}

// ---- broadcasting ----------------------------------------------------------------------------------

TEST(Broadcasting, StretchesSizesOfOne) {
  const Tensor row = tensor({10, 20, 30}), column = view(tensor({1, 2}), {2, 1});
  const Tensor table = row + column;
  EXPECT_EQ(table.shape(), (Shape{2, 3}));
  EXPECT_EQ(floats(table), (Floats{11, 21, 31, 12, 22, 32}));
  EXPECT_EQ(floats(column - row), (Floats{-9, -19, -29, -8, -18, -28}));
}

TEST(Broadcasting, WorksForEveryPairOfCompatibleShapes) {
  // Every axis of either operand is full or 1; checked against the index arithmetic spelled out.
  for (int mask = 0; mask < 64; ++mask) {
    Shape a_shape{2, 3, 4}, b_shape{2, 3, 4};
    for (int axis = 0; axis < 3; ++axis) {
      if (mask >> axis & 1) a_shape[axis] = 1;
      if (mask >> (axis + 3) & 1) b_shape[axis] = 1;
    }
    const auto counting = [](const Shape& shape, double from) {
      return view(arange(from, from + static_cast<double>(numel(shape)), 1, {}), shape);
    };
    const Tensor a = counting(a_shape, 0), b = counting(b_shape, 100), y = a - b;
    const Shape shape = broadcast_shapes(a_shape, b_shape, "test");
    ASSERT_EQ(y.shape(), shape);
    const Floats values = floats(y);
    size_t next = 0;
    for (int64_t i = 0; i < shape[0]; ++i) {
      for (int64_t j = 0; j < shape[1]; ++j) {
        for (int64_t k = 0; k < shape[2]; ++k) {
          const auto at = [&](const Tensor& x) {
            const Shape& s = x.shape();
            return x[s[0] == 1 ? 0 : i][s[1] == 1 ? 0 : j][s[2] == 1 ? 0 : k].item<float>();
          };
          ASSERT_EQ(values[next++], at(a) - at(b)) << to_text(a_shape) << " " << to_text(b_shape);
        }
      }
    }
  }
}

TEST(Broadcasting, ReachesBeyondOnePieceOfWork) {
  const int64_t rows = 300, cols = 700;  // rows and columns that no tile size divides
  const Tensor a = arange(0, rows, 1, {}), b = arange(0, cols, 1, {});
  const Floats y = floats(unsqueeze(a, 1) * 1000 + b);
  for (int64_t i = 0; i < rows * cols; ++i) {
    ASSERT_EQ(y[static_cast<size_t>(i)], static_cast<float>(i / cols * 1000 + i % cols));
  }
}

TEST(Broadcasting, RefusesShapesThatDoNotFitAndNamesThem) {
  EXPECT_THAT(
      [] {
        zeros({2, 3}) + zeros({2});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("add"), HasSubstr("[2, 3]"), HasSubstr("[2]"))));
}

TEST(Broadcasting, EmptyTensorsStayEmpty) {
  EXPECT_EQ((zeros({0, 3}) + zeros({1, 3})).shape(), (Shape{0, 3}));
  EXPECT_EQ((zeros({0}) * 2).shape(), Shape{0});
}

// ---- promotion -------------------------------------------------------------------------------------

TEST(OpPromotion, NumbersDoNotWidenATensorOfTheirCategory) {
  const Tensor b = tensor({1, 2}, bf16), i = tensor({1, 2}, i64), small = tensor({1, 2}, u8);
  EXPECT_EQ((b * 0.1).dtype(), bf16);
  EXPECT_EQ((b * 2).dtype(), bf16);
  EXPECT_EQ((small + 1).dtype(), u8);
  EXPECT_EQ((small + true).dtype(), u8);
  EXPECT_EQ((tensor({1, 2}, f64) + 1.5).dtype(), f64);
  EXPECT_EQ((i * 2).dtype(), i64);
}

TEST(OpPromotion, NumbersOfAHigherCategoryGiveItsDefault) {
  const Tensor i = tensor({1, 3}, i64), flags = tensor({0, 1}, boolean);
  EXPECT_EQ((i * 2.5).dtype(), f32);
  EXPECT_EQ(floats(i * 2.5), (Floats{2.5, 7.5}));
  EXPECT_EQ((flags + 1).dtype(), i64);
  EXPECT_EQ((flags * 0.5).dtype(), f32);
  EXPECT_EQ((flags + true).dtype(), boolean);
}

TEST(OpPromotion, ScalarTensorsWidenOnlyIntoAHigherCategory) {
  const Tensor scalar64 = tensor(2, f64), scalar_int = tensor(2, i64);
  EXPECT_EQ((tensor({1, 2}, f32) + scalar64).dtype(), f32);
  EXPECT_EQ((tensor({1, 2}, bf16) * scalar64).dtype(), bf16);
  EXPECT_EQ((tensor({1, 2}, i8) + scalar_int).dtype(), i8);
  EXPECT_EQ((tensor({1, 2}, i8) + scalar64).dtype(), f64) << "a real dtype, not a host number";
  EXPECT_EQ((tensor({0, 1}, boolean) + scalar_int).dtype(), i64);
  EXPECT_EQ((scalar_int + tensor(1, i32)).dtype(), i64) << "both of one sort: the lattice decides";
  EXPECT_EQ((scalar64 * 0.5).dtype(), f64);
  EXPECT_EQ((tensor(2, i32) * 0.5).dtype(), f32);
}

TEST(OpPromotion, TensorsFollowTheLattice) {
  const auto sum_type = [](DType a, DType b) {
    return (ones({2}, {.dtype = a}) + ones({2}, {.dtype = b})).dtype();
  };
  EXPECT_EQ(sum_type(f16, bf16), f32);
  EXPECT_EQ(sum_type(f16, i64), f16);
  EXPECT_EQ(sum_type(u8, i8), i16);
  EXPECT_EQ(sum_type(f32, f64), f64);
  EXPECT_EQ(sum_type(boolean, i16), i16);
}

TEST(OpPromotion, MixedDTypesComputeInTheTypeOfTheResult) {
  EXPECT_EQ(floats(tensor({1.5, 2.5}, bf16) + tensor({1, 2}, i32)), (Floats{2.5, 4.5}));
  const Tensor wide = tensor({1e-10}, f64) + tensor({1}, f32);
  EXPECT_EQ(wide.item<double>(), 1 + 1e-10) << "the f32 operand does not cost digits";
  EXPECT_EQ(ints(from_values(std::vector<int64_t>{(int64_t{1} << 60) + 1}, {1}) + tensor({1}, i8)),
            (std::vector<int64_t>{(int64_t{1} << 60) + 2}))
      << "integers never pass through floats";
}

TEST(OpPromotion, ComparisonsGiveBoolsFromOperandsOfAnyDType) {
  const Tensor x = tensor({1, 2, 3}, i32) > 1.5;
  EXPECT_EQ(x.dtype(), boolean);
  EXPECT_EQ(ints(x), (std::vector<int64_t>{0, 1, 1})) << "2 > 1.5: the number is not truncated";
  EXPECT_EQ(ints(equal(tensor({1, 2}, f64), tensor({1, 3}, i8))), (std::vector<int64_t>{1, 0}));
  const int64_t odd = (int64_t{1} << 53) + 1;
  EXPECT_EQ(ints(from_values(std::vector<int64_t>{odd}, {1}) > odd - 1), std::vector<int64_t>{1});
}

TEST(OpPromotion, PackedAndBoolOperandsAreRefusedWhereTheyMakeNoSense) {
  EXPECT_THAT(
      [] {
        tensor({1, 2}, i4) + 1;
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("add"), HasSubstr("i4"), HasSubstr("cast"))));
  EXPECT_THAT(
      [] {
        -tensor({0, 1}, boolean);
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("neg"), HasSubstr("bool"))));
  EXPECT_THAT(
      [] {
        where(tensor({1, 0}), 1, 2);
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("where"), HasSubstr("f32"))));
}

// ---- values at the edges -----------------------------------------------------------------------------

TEST(EdgeValues, NanPassesThrough) {
  const Tensor nan = full({3}, kNan), x = tensor({-1, 0, 1});
  for (const Tensor& y : {x + nan, nan * 0, maximum(x, nan), maximum(nan, x), minimum(x, nan),
                          minimum(nan, x), relu(nan), abs(nan), sign(nan), sqrt(nan), exp(nan),
                          tanh(nan), sigmoid(nan), gelu(nan), pow(nan, 2)}) {
    for (float value : floats(y)) EXPECT_TRUE(std::isnan(value));
  }
  EXPECT_EQ(ints(equal(nan, nan)), (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(ints(not_equal(nan, nan)), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(ints(nan < x), (std::vector<int64_t>{0, 0, 0}));
}

// Values by mpmath. 1 + erf(x / sqrt 2) cancels there: in f32 nothing is left of it from -6 on.
TEST(EdgeValues, GeluKeepsItsDigitsInTheTail) {
  const Tensor x = tensor({-1, -3, -5, -8, -12});
  const double exact[] = {-0.15865525393145705, -0.0040496940948902836, -1.4332578593959696e-6,
                          -4.9767684594174273e-15, -2.1317785344932148e-32};
  const double exact_grad[] = {-0.083315470587686298, -0.011945647204183927, -7.1469460017922946e-6,
                               -3.979607261086796e-14, -2.5578956616748956e-31};
  const Tensor y = gelu(x), dx = call_one(gelu_backward_op, {x, full({5}, 1)});
  // 5 units of f32 are what tests/base/scalar_math_test.cpp allows the function.
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(floats(y)[i], exact[i], 5 * kUnit * std::abs(exact[i]));
    EXPECT_NEAR(floats(dx)[i], exact_grad[i], 5 * kUnit * std::abs(exact_grad[i]));
  }
}

TEST(EdgeValues, NanInTheBranchNotTakenDoesNotLeak) {
  EXPECT_EQ(floats(where(tensor({1, 0}, boolean), tensor({5, kNan}), tensor({kNan, 6}))),
            (Floats{5, 6}));
}

TEST(EdgeValues, InfinitiesFollowIeee754) {
  const Tensor inf = tensor({kInfinity});
  EXPECT_EQ((inf + 1).item<double>(), kInfinity);
  EXPECT_TRUE(std::isnan((inf - inf).item<double>()));
  EXPECT_EQ((tensor({1}) / 0).item<double>(), kInfinity);
  EXPECT_EQ(exp(-inf).item<double>(), 0);
  EXPECT_EQ(tanh(inf).item<double>(), 1);
  EXPECT_EQ(log(tensor({0})).item<double>(), -kInfinity);
  EXPECT_TRUE(std::isnan(sqrt(tensor({-1})).item<double>()));
}

TEST(EdgeValues, IntegersWrapAround) {
  EXPECT_EQ(ints(tensor({127, -128}, i8) + tensor({1, -1}, i8)), (std::vector<int64_t>{-128, 127}));
  EXPECT_EQ(ints(tensor({200}, u8) * 2), std::vector<int64_t>{144});
  EXPECT_EQ(ints(tensor({0}, u16) - 1), std::vector<int64_t>{65'535});
  EXPECT_EQ(ints(-tensor({1}, u32)), std::vector<int64_t>{4'294'967'295});
  const int64_t max = std::numeric_limits<int64_t>::max(),
                min = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(ints(from_values(std::vector<int64_t>{max}, {1}) + 1), std::vector<int64_t>{min});
  EXPECT_EQ(ints(abs(from_values(std::vector<int64_t>{min}, {1}))), std::vector<int64_t>{min});
  EXPECT_EQ(ints(pow(tensor({3}, i32), 20)), std::vector<int64_t>{-808'182'895});
}

TEST(EdgeValues, SmallFloatsRoundOnceFromF32) {
  // 1 + 2^-8 is half way between bf16 neighbours and goes to the even one.
  EXPECT_EQ((tensor({1}, bf16) + tensor({0.00390625}, bf16)).item<double>(), 1);
  EXPECT_EQ((tensor({65504}, f16) * 2).item<double>(), kInfinity);
  EXPECT_EQ((tensor({448}, f8e4m3) * 2).item<double>(), 448) << "saturates: there is no infinity";
}

TEST(EdgeValues, CastsConvertAsElementsDo) {
  EXPECT_EQ(ints(cast(tensor({2.9, -2.9, 300, -300, kNan}), i8)),
            (std::vector<int64_t>{2, -2, 127, -128, 0}));
  EXPECT_EQ(ints(cast(tensor({300, -1}, i64), u8)), (std::vector<int64_t>{44, 255}));
  EXPECT_EQ(ints(cast(tensor({0, 0.1, kNan, -0.0}), boolean)), (std::vector<int64_t>{0, 1, 1, 0}));
  EXPECT_EQ(floats(cast(cast(tensor({-9.5, 3, 8}), i4), f32)), (Floats{-8, 3, 7}));
  const Tensor x = tensor({1});
  EXPECT_TRUE(shares_storage(cast(x, f32), x)) << "nothing to do, nothing copied";
}

// ---- writes ------------------------------------------------------------------------------------------

TEST(Writes, CopyFromBroadcastsAndConverts) {
  const Tensor x = zeros({2, 3}, {.dtype = i32});
  x.copy_from(tensor({1.9, -2.9, 3}));
  EXPECT_EQ(ints(x), (std::vector<int64_t>{1, -2, 3, 1, -2, 3}));
  transpose(x).copy_from(view(tensor({7, 8, 9}), {3, 1}));
  EXPECT_EQ(ints(x), (std::vector<int64_t>{7, 8, 9, 7, 8, 9}));
  EXPECT_THROW(x.copy_from(zeros({2, 4})), Error);
  EXPECT_THROW(x[0].copy_from(zeros({2, 3})), Error) << "a target does not grow";
}

TEST(Writes, OverlappingCopiesReadBeforeTheyWrite) {
  for (int64_t size : {6, 5000}) {  // within one tile, and over several
    const Tensor x = arange(size), y = arange(size);
    slice(x, 0, {1}).copy_from(slice(x, 0, {0, -1}));
    slice(y, 0, {0, -1}).copy_from(slice(y, 0, {1}));
    const auto up = ints(x), down = ints(y);
    EXPECT_EQ(up[0], 0);
    EXPECT_EQ(down.back(), size - 1);
    for (size_t i = 1; i < up.size(); ++i) {
      ASSERT_EQ(up[i], static_cast<int64_t>(i) - 1);
      ASSERT_EQ(down[i - 1], static_cast<int64_t>(i));
    }
  }
}

TEST(Writes, ATensorMayBecomeItsOwnTransposed) {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  x.copy_from(transpose(x));
  EXPECT_EQ(floats(x), (Floats{1, 3, 2, 4}));
  x.copy_from(x);
  EXPECT_EQ(floats(x), (Floats{1, 3, 2, 4}));
}

TEST(Writes, FillReachesOnlyTheElementsOfTheView) {
  const Tensor x = zeros({3, 4});
  slice(x, 1, {1, 4, 2}).fill(7);
  EXPECT_EQ(floats(x), (Floats{0, 7, 0, 7, 0, 7, 0, 7, 0, 7, 0, 7}));
  x[1].fill(-1);
  EXPECT_EQ(floats(x), (Floats{0, 7, 0, 7, -1, -1, -1, -1, 0, 7, 0, 7}));
}

TEST(Writes, FillConvertsAsFullDoes) {
  for (double value : {2.9, -2.9, 300.0, 0.5, 1e30, -1e30, kNan, kInfinity}) {
    for (DType dtype : {f64, bf16, f8e4m3, i64, i8, u8, boolean}) {
      const Tensor filled = zeros({2}, {.dtype = dtype}), made = full({2}, value, {.dtype = dtype});
      filled.fill(value);
      EXPECT_EQ(to_text(filled), to_text(made)) << value;
    }
  }
}

TEST(Writes, ToRepeatedElementsAreRefused) {
  const Tensor x = zeros({3}), repeated = expand(x, {2, 3});
  const auto refused = ThrowsMessage<Error>(AllOf(HasSubstr("more than once"), HasSubstr("clone")));
  EXPECT_THAT([&] { repeated.fill(1); }, refused);
  EXPECT_THAT([&] { repeated.copy_from(ones({2, 3})); }, refused);
}

TEST(Writes, NeighboursInAPackedByteSurvive) {
  const Tensor x = tensor({1, 2, 3, 4, 5}, u4);
  slice(x, 0, {1, 4}).fill(15);
  EXPECT_EQ(ints(x), (std::vector<int64_t>{1, 15, 15, 15, 5}));
}

// ---- floor_divide: Python's // -------------------------------------------------------------------------

TEST(FloorDivide, RoundsIntegersTowardsMinusInfinity) {
  const Tensor a = tensor({7, -7, 7, -7, 6, -6, 0}, i64), b = tensor({2, 2, -2, -2, 3, 3, -5}, i64);
  EXPECT_EQ(ints(floor_divide(a, b)), (std::vector<int64_t>{3, -4, -4, 3, 2, -2, 0}));
  EXPECT_EQ(floor_divide(a, b).dtype(), i64);
  EXPECT_EQ(ints(floor_divide(a, b) * b + remainder(a, b)), ints(a));
  EXPECT_EQ(ints(floor_divide(tensor({200, 7}, u8), tensor({3, 9}, u8))),
            (std::vector<int64_t>{66, 0}));
}

TEST(FloorDivide, TheSmallestIntegerOverMinusOneWraps) {
  const int64_t smallest = std::numeric_limits<int64_t>::min();
  const Tensor a = full({1}, 1, {.dtype = i64});
  a.data<int64_t>()[0] = smallest;
  EXPECT_EQ(ints(floor_divide(a, tensor({-1}, i64))), (std::vector<int64_t>{smallest}));
}

// What Python gives, -0.0 included. 1.0 // 0.1 is 9, since 0.1 is a little more than a tenth.
TEST(FloorDivide, RoundsFloatsTowardsMinusInfinity) {
  const Tensor a = tensor({7.5, -7.5, 7.5, -7.5, 1, -0.0, 0.5, -0.5}, f64);
  const Tensor b = tensor({2, 2, -2, -2, 0.1, 3, 3, 3}, f64);
  const std::vector<double> y = floor_divide(a, b).to_vector<double>();
  EXPECT_EQ(y, (std::vector<double>{3, -4, -4, 3, 9, 0, 0, -1}));
  EXPECT_TRUE(std::signbit(y[5]));
}

TEST(FloorDivide, LargeFloatsStayExact) {
  EXPECT_EQ(floats(floor_divide(tensor({8388609, 16777213}), tensor({1, 1}))),
            (Floats{8388609, 16777213}));
}

TEST(FloorDivide, AnIntegerOverZeroIsAnErrorAndAFloatIsNot) {
  EXPECT_THAT(
      [] {
        floor_divide(tensor({4, 5}, i64), tensor({2, 0}, i64));
      },
      ThrowsMessage<Error>("floor_divide: element 1 of the divisor is 0, and integers have "
                           "no NaN; mask it with where(), or cast to a float"));
  const Floats y = floats(floor_divide(tensor({1, -1, 0}), 0));
  EXPECT_EQ(y[0], kInfinity);
  EXPECT_EQ(y[1], -kInfinity);
  EXPECT_TRUE(std::isnan(y[2]));
}

}  // namespace
}  // namespace brrr
