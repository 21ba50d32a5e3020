#include "brrr/ops/view/join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/base/thread_pool.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/triangle.h"
#include "brrr/ops/view/views.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }

TEST(Concat, JoinsAlongEachAxis) {
  const Tensor a = tensor({{1, 2}, {3, 4}}), b = tensor({{5, 6}, {7, 8}});
  EXPECT_EQ(concat({a, b}).shape(), (Shape{4, 2}));
  EXPECT_THAT(values(concat({a, b})), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(values(concat({a, b}, -1)), ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
  EXPECT_THAT(values(concat({transpose(a), b}, 1)), ElementsAre(1, 3, 5, 6, 2, 4, 7, 8));
}

TEST(Concat, TakesOnePartAndEmptyParts) {
  EXPECT_THAT(values(concat({tensor({1, 2})})), ElementsAre(1, 2));
  EXPECT_THAT(values(concat({zeros({2, 0}), reshape(tensor({1, 2}), {2, 1}), zeros({2, 0})}, 1)),
              ElementsAre(1, 2));
  EXPECT_EQ(concat({zeros({0}), zeros({0})}).shape(), (Shape{0}));
}

TEST(Concat, PromotesDtypes) {
  const auto joined = [](DType a, DType b) {
    return concat({ones({1}, {a}), ones({1}, {b})}).dtype();
  };
  EXPECT_EQ(joined(DType::f32, DType::i64), DType::f32);
  EXPECT_EQ(joined(DType::bf16, DType::f16), DType::f32);
  EXPECT_EQ(joined(DType::u8, DType::i8), DType::i16);
  EXPECT_EQ(joined(DType::boolean, DType::boolean), DType::boolean);
  EXPECT_THAT(values(concat({tensor({1.5}), tensor({2}, DType::i32)})), ElementsAre(1.5, 2));
}

TEST(Concat, GradientsAreSlices) {
  const Tensor a = reshape(tensor({1, 2}), {2, 1}), b = tensor({{3, 4}, {5, 6}}, DType::f64);
  a.require_grad();
  b.require_grad();
  backward(concat({a, b}, 1), {.seed = tensor({{1, 2, 3}, {4, 5, 6}}, DType::f64)});
  EXPECT_EQ(a.grad().dtype(), DType::f32);
  EXPECT_THAT(values(a.grad()), ElementsAre(1, 4));
  EXPECT_THAT(values(b.grad()), ElementsAre(2, 3, 5, 6));
}

TEST(Concat, RefusesWithTheReason) {
  EXPECT_THAT(error_of([] { concat({}); }), HasSubstr("concat: no parts given"));
  EXPECT_THAT(error_of([] {
                concat({zeros({2, 3}), zeros({2, 3}), zeros({2})});
              }),
              HasSubstr("concat: part 2 has shape [2] and part 0 has shape [2, 3]; give every part "
                        "the same number of axes"));
  EXPECT_THAT(error_of([] {
                concat({zeros({2, 3}), zeros({2, 4})});
              }),
              HasSubstr("concat: part 1 has size 4 on axis 1 and part 0 has 3 (shapes [2, 4] and "
                        "[2, 3]); only axis 0 may differ"));
  EXPECT_THAT(error_of([] { concat({zeros({2}), zeros({2})}, 1); }), HasSubstr("concat: axis 1"));
  EXPECT_THAT(error_of([] { concat({zeros({})}); }), HasSubstr("a scalar has no axes"));
  EXPECT_THAT(error_of([] {
                concat({zeros({2}), zeros({2}, {.device = Device::null()})});
              }),
              HasSubstr("concat: operands live on different devices"));
}

TEST(Triangle, KeepsTheSideOfTheDiagonal) {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}});
  EXPECT_THAT(values(tril(x)), ElementsAre(1, 0, 0, 4, 5, 0, 7, 8, 9));
  EXPECT_THAT(values(tril(x, 1)), ElementsAre(1, 2, 0, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(values(tril(x, -1)), ElementsAre(0, 0, 0, 4, 0, 0, 7, 8, 0));
  EXPECT_THAT(values(triu(x)), ElementsAre(1, 2, 3, 0, 5, 6, 0, 0, 9));
  EXPECT_THAT(values(triu(x, 1)), ElementsAre(0, 2, 3, 0, 0, 6, 0, 0, 0));
  EXPECT_THAT(values(triu(transpose(x), -1)), ElementsAre(1, 4, 7, 2, 5, 8, 0, 6, 9));
}

TEST(Triangle, TakesAnyDiagonal) {
  const Tensor x = ones({2, 3});
  EXPECT_EQ(values(tril(x, INT64_MAX)), values(x));
  EXPECT_EQ(values(tril(x, INT64_MIN)), values(zeros({2, 3})));
  EXPECT_EQ(values(triu(x, INT64_MAX)), values(zeros({2, 3})));
  EXPECT_EQ(values(triu(x, INT64_MIN)), values(x));
}

TEST(Triangle, KeepsTheDtype) {
  const Tensor mask = tril(ones({2, 2}, {.dtype = DType::boolean}));
  EXPECT_EQ(mask.dtype(), DType::boolean);
  EXPECT_THAT(values(mask), ElementsAre(1, 0, 1, 1));
}

TEST(Triangle, GradientIsATriangle) {
  const Tensor x = ones({2, 2});
  x.require_grad();
  backward(triu(x, 1), {.seed = tensor({{1, 2}, {3, 4}})});
  EXPECT_THAT(values(x.grad()), ElementsAre(0, 2, 0, 0));
}

TEST(Triangle, RefusesVectors) {
  EXPECT_THAT(
      error_of([] { tril(zeros({3})); }),
      HasSubstr("tril: shape [3] has no rows and columns; give a tensor of rank 2 or more"));
}

TEST(JoinThreads, ConcatAndTrianglesGiveTheSameBits) {
  const Tensor a = sample_values({200, 300}, 1), b = cast(sample_values({200, 7}, 2), DType::f32);
  std::vector<double> joined, lower;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    if (threads == 1) joined = values(concat({a, b}, 1)), lower = values(tril(a, 5));
    EXPECT_EQ(values(concat({a, b}, 1)), joined);
    EXPECT_EQ(values(tril(a, 5)), lower);
  }
  set_num_threads(available_cores());
}

}  // namespace
}  // namespace brrr
