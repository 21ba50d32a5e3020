// x += y and the like: what is written, seen, counted and refused.
#include "brrr/ops/elementwise/assign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/compile.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }

TEST(Assign, WritesTheElementsThatEveryViewSees) {
  const Tensor x = tensor({{1, 2}, {3, 4}}), row = x[1];
  x += 1;
  x *= tensor({10, 100});
  row -= 5;
  x /= 2.0;
  EXPECT_THAT(values(x), ElementsAre(10, 150, 17.5, 247.5));
  EXPECT_THAT(values(row), ElementsAre(17.5, 247.5));
}

TEST(Assign, GivesTheTensorThatItWrote) {
  const Tensor x = tensor({1, 2});
  const Tensor& same = (x += 1) *= 2;
  EXPECT_EQ(&same, &x);
  EXPECT_THAT(values(x), ElementsAre(4, 6));
}

TEST(Assign, ReadsBothOperandsBeforeItWrites) {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  x += transpose(x);
  EXPECT_THAT(values(x), ElementsAre(2, 5, 5, 8));
  x -= x;
  EXPECT_THAT(values(x), ElementsAre(0, 0, 0, 0));
}

TEST(Assign, KeepsTheDtype) {
  const Tensor half = tensor({1, 2}, DType::bf16), whole = tensor({7, 8}, DType::i32);
  half += tensor({0.5, 0.5}, DType::f32);
  EXPECT_EQ(half.dtype(), DType::bf16);
  EXPECT_THAT(values(half), ElementsAre(1.5, 2.5));
  whole += tensor({1, 2}, DType::i64);
  EXPECT_EQ(whole.dtype(), DType::i32);
  EXPECT_THAT(values(whole), ElementsAre(8, 10));
}

TEST(Assign, RefusesAResultThatXCannotHold) {
  const Tensor whole = tensor({1, 2}, DType::i32), row = tensor({1, 2});
  EXPECT_EQ(error_of([&] { whole += 0.5; }),
            "x += y: the result is f32 and x i32, which would cut it; cast x to f32 first, or the "
            "result to i32");
  EXPECT_THAT(error_of([&] { whole /= 2; }), HasSubstr("x /= y: the result is f32 and x i32"));
  EXPECT_EQ(error_of([&] {
              row *= zeros({3, 2});
            }),
            "x *= y: the result has shape [3, 2] and x [2]; x keeps its shape, so y must broadcast "
            "to it");
  EXPECT_THAT(values(whole), ElementsAre(1, 2));
  EXPECT_THAT(values(row), ElementsAre(1, 2));
}

TEST(Assign, RefusesToCutAGradient) {
  const Tensor weight = tensor({1, 2}), x = tensor({3, 4});
  weight.require_grad();
  EXPECT_THAT(error_of([&] { weight -= 1; }), HasSubstr("a write would cut them"));
  EXPECT_THAT(error_of([&] { x += weight; }), HasSubstr("a write would cut them"));
  {
    NoGrad updating;
    weight -= x;
  }
  EXPECT_THAT(values(weight), ElementsAre(-2, -2));
}

TEST(Assign, IsSeenByATapeThatKeptTheElements) {
  const Tensor w = tensor({2, 3}), x = tensor({5, 7});
  w.require_grad();
  const Tensor y = sum(w * x);
  x += 1;  // the gradient of w would be read from it
  EXPECT_NE(error_of([&] { y.backward(); }), "no error");
}

TEST(Assign, WritesAStateOfACompiledFunction) {
  const Tensor total = zeros({2});
  auto add = runtime::compile([&](Tensor x) {
    total += x;
    total *= 2;
    return total + 0.5;
  });
  EXPECT_THAT(values(add(tensor({1, 2}))), ElementsAre(2.5, 4.5));
  EXPECT_THAT(values(add(tensor({10, 20}))), ElementsAre(24.5, 48.5));
  EXPECT_THAT(values(total), ElementsAre(24, 48));
}

}  // namespace
}  // namespace brrr
