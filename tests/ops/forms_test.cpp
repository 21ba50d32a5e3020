// One axis or several, one setting or all: the forms in which reductions and new tensors are asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/ops/create/creation.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"

namespace brrr {
namespace {

using ::testing::ElementsAre;

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }

TEST(ReductionForms, AnAxisIsANumberOrAList) {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 7}});
  const size_t unsigned_axis = 1;
  EXPECT_THAT(values(sum(x, 1)), ElementsAre(6, 16));
  EXPECT_THAT(values(sum(x, unsigned_axis)), ElementsAre(6, 16));
  EXPECT_THAT(values(sum(x, {1})), ElementsAre(6, 16));
  EXPECT_THAT(values(sum(x, 0)), ElementsAre(5, 7, 10));
  EXPECT_THAT(values(sum(x, {0, -1})), ElementsAre(22));
  EXPECT_EQ(sum(x, -1, KeepDims::yes).shape(), (Shape{2, 1}));
  EXPECT_EQ(sum(x, {0, 1}, KeepDims::yes).shape(), (Shape{1, 1}));
}

TEST(ReductionForms, AllOfThemTakeANumber) {
  const Tensor x = tensor({{1, 5, 3}, {0, 4, 2}});
  EXPECT_THAT(values(mean(x, 1)), ElementsAre(3, 2));
  EXPECT_THAT(values(max(x, 1)), ElementsAre(5, 4));
  EXPECT_THAT(values(min(x, 1)), ElementsAre(1, 0));
  EXPECT_THAT(values(argmax(x, 1)), ElementsAre(1, 1));
  EXPECT_THAT(values(argmin(x, 0)), ElementsAre(1, 1, 1));
  EXPECT_THAT(values(any(x, 0)), ElementsAre(1, 1, 1));
  EXPECT_THAT(values(all(x, 1)), ElementsAre(1, 0));
  EXPECT_THAT(values(prod(x, 1)), ElementsAre(15, 0));
  EXPECT_THAT(values(norm(x, 1, 1)), ElementsAre(9, 6));
  EXPECT_THAT(values(var(x, 1)), ElementsAre(4, 4));
  EXPECT_THAT(values(var(x, 0, KeepDims::no, 0)), ElementsAre(0.25, 0.25, 0.25));
  EXPECT_THAT(values(stddev(x, 1)), ElementsAre(2, 2));
  EXPECT_EQ(logsumexp(x, 1).shape(), Shape{2});
}

// {} is no number: it once chose the form with one axis, as 0.
TEST(ReductionForms, NoAxesAreAllOfThem) {
  const Tensor x = tensor({{1, 2, 3}, {4, 9, 6}});
  EXPECT_THAT(values(argmax(x, {})), ElementsAre(4));
  EXPECT_THAT(values(sum(x, {})), ElementsAre(25));
  EXPECT_EQ(max(x, {}, KeepDims::yes).shape(), (Shape{1, 1}));
}

TEST(CreationForms, OneSettingStandsForTheOptions) {
  EXPECT_EQ(zeros({2, 3}, DType::f64).dtype(), DType::f64);
  EXPECT_EQ(zeros({2, 3}, Device::null()).device(), Device::null());
  EXPECT_EQ(zeros({2, 3}, Device::null()).dtype(), DType::f32);
  EXPECT_EQ(ones({2}, DType::bf16).dtype(), DType::bf16);
  EXPECT_THAT(values(full({2}, 7.6, DType::i32)), ElementsAre(7, 7));
  EXPECT_EQ(linspace(0, 1, 3, DType::f64).dtype(), DType::f64);
  EXPECT_THAT(values(eye(2, DType::i64)), ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(eye(2, 3, DType::f16).dtype(), DType::f16);
  EXPECT_EQ(tensor({1, 2}, {.dtype = DType::u8, .device = Device::null()}).device(),
            Device::null());
  const Tensor half = zeros({3}, DType::bf16);
  EXPECT_EQ(ones_like(half, DType::f32).dtype(), DType::f32);
  EXPECT_EQ(zeros_like(half, Device::null()).type(), half.type());
}

TEST(CreationForms, CountsAreI64UnlessADtypeIsNamed) {
  EXPECT_EQ(arange(3).dtype(), DType::i64);
  EXPECT_EQ(arange(3, Device::null()).dtype(), DType::i64);
  EXPECT_EQ(arange(3, DType::f32).dtype(), DType::f32);
  EXPECT_THAT(values(arange(1, 2, 0.25, DType::f64)), ElementsAre(1, 1.25, 1.5, 1.75));
  EXPECT_THAT(values(arange(1, 4, DType::i32)), ElementsAre(1, 2, 3));
}

// {} is no dtype either: the first of them would be f64.
TEST(CreationForms, NoSettingIsTheDefault) {
  EXPECT_EQ(zeros({2}, {}).dtype(), DType::f32);
  EXPECT_EQ(uniform({2}, {}, {}).dtype(), DType::f32);
}

TEST(CreationForms, RandomTensorsTakeThemAlike) {
  const RandomKey key{.seed = 3};
  EXPECT_EQ(uniform({2}, DType::f64).dtype(), DType::f64);
  EXPECT_EQ(values(uniform({4}, key, {-1, 1}, DType::f64)),
            values(uniform({4}, key, {-1, 1}, {.dtype = DType::f64})));
  EXPECT_EQ(values(normal({4}, key, DType::f64)),
            values(normal({4}, key, {}, {.dtype = DType::f64})));
  EXPECT_EQ(normal({2}, {.std = 3}, DType::bf16).dtype(), DType::bf16);
  EXPECT_EQ(truncated_normal({2}, DType::f16).dtype(), DType::f16);
  EXPECT_EQ(randint({2}, key, 0, 5, DType::i32).dtype(), DType::i32);
  EXPECT_EQ(randint({2}, 0, 5, Device::null()).dtype(), DType::i64);
  EXPECT_EQ(bernoulli({2}, 0.5, DType::boolean).dtype(), DType::boolean);
}

}  // namespace
}  // namespace brrr
