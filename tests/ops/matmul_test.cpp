#include "brrr/ops/matmul/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/brrr.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Matmul, HasTheLecturesShapes) {
  EXPECT_EQ(matmul(ones({16, 32}), ones({32, 2})).shape(), (Shape{16, 2}));
  EXPECT_EQ(matmul(ones({4, 8, 16, 32}), ones({32, 2})).shape(), (Shape{4, 8, 16, 2}));
}

TEST(Matmul, TreatsVectorsAsRowsAndColumns) {
  const Tensor v = tensor({1, 2, 3}), m = tensor({{1, 0}, {0, 1}, {1, 1}});
  EXPECT_EQ(matmul(v, v).shape(), Shape{});
  EXPECT_EQ(matmul(v, v).item<float>(), 14);
  EXPECT_THAT(matmul(v, m).to_vector<float>(), ElementsAre(4, 5));
  EXPECT_THAT(matmul(transpose(m), v).to_vector<float>(), ElementsAre(4, 5));
  EXPECT_EQ(matmul(ones({5, 2, 3}), v).shape(), (Shape{5, 2}));
}

// A copy would show in the ledger as workspace beside the packed panels.
Bytes workspace_of(const Tensor& a, const Tensor& b) {
  ledger().reset_peak();
  matmul(a, b);
  return ledger().peak(Category::workspace);
}

TEST(Matmul, ReadsAnyStridesWithoutACopy) {
  const Bytes plain = workspace_of(ones({30, 40}), ones({40, 50}));
  const Tensor a = ones({40, 30}), b = ones({50, 40}), wide = ones({60, 100});
  EXPECT_EQ(workspace_of(transpose(a), transpose(b)), plain);
  EXPECT_EQ(workspace_of(slice(slice(wide, 0, {0, 60, 2}), 1, {5, 45}), transpose(b)), plain);
  EXPECT_EQ(workspace_of(expand(ones({1, 40}), {30, 40}), ones({40, 50})), plain);
}

TEST(Matmul, GivesTheSameBitsForTransposedOperands) {
  Random random(3);
  const Tensor a = normal({70, 500}, random.stream("a")), b = normal({500, 90}, random.stream("b"));
  const Tensor turned_a = transpose(clone(transpose(a))), turned_b = transpose(clone(transpose(b)));
  EXPECT_EQ(matmul(turned_a, turned_b).to_vector<float>(), matmul(a, b).to_vector<float>());
}

TEST(Matmul, OverNothingIsZero) {
  EXPECT_THAT(matmul(ones({2, 0}), ones({0, 2})).to_vector<float>(), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(matmul(ones({2, 3, 0}), ones({0, 5})).shape(), (Shape{2, 3, 5}));
  EXPECT_EQ(matmul(ones({0, 3}), ones({3, 5})).numel(), 0);
}

TEST(Matmul, OfIntegersIsExactAndWraps) {
  const Tensor a = tensor({{1, 2}, {3, 4}}, DType::i32), b = tensor({{5, 6}, {7, 8}}, DType::i32);
  EXPECT_THAT(matmul(a, b).to_vector<int>(), ElementsAre(19, 22, 43, 50));
  const Tensor big = tensor({{100}}, DType::i8);
  EXPECT_EQ(matmul(big, big).item<int>(), static_cast<int8_t>(10000));
}

TEST(Matmul, AccumulatesLowPrecisionInF32) {
  // 4096 products of 1: a bf16 accumulator would stop at 256.
  const Tensor x = ones({1, 4096}, {.dtype = DType::bf16});
  EXPECT_EQ(matmul(x, transpose(x)).item<float>(), 4096);
}

TEST(Matmul, IsTheSameForAnyNumberOfThreads) {
  Random random(7);
  const Tensor a = normal({300, 500}, random.stream("a")),
               b = normal({500, 400}, random.stream("b"));
  const int before = thread_pool().threads();
  std::vector<std::vector<float>> results;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    results.push_back(matmul(a, b).to_vector<float>());
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(Matmul, SaysWhyShapesAndDTypesDoNotFit) {
  EXPECT_THAT(error_of([] {
                matmul(ones({2, 3}), ones({2, 3}));
              }),
              HasSubstr("matmul: inner sizes differ: [2, 3] @ [2, 3]; transpose one of them?"));
  EXPECT_THAT(error_of([] {
                matmul(ones({2, 2, 3}), ones({3, 3, 2}));
              }),
              HasSubstr("do not broadcast"));
  EXPECT_THAT(error_of([] {
                matmul(ones({2, 2}), ones({2, 2}, {.dtype = DType::f64}));
              }),
              HasSubstr("f32 and f64; cast one of them"));
  EXPECT_THAT(error_of([] { matmul(ones({}), ones({2})); }), HasSubstr("multiply with *"));
  EXPECT_THAT(error_of([] {
                linear(ones({2, 3}), ones({4, 2}));
              }),
              HasSubstr("the last size must be 2"));
  EXPECT_THAT(error_of([] {
                linear(ones({2, 2}), ones({4, 2}), ones({3}));
              }),
              HasSubstr("must be [4]"));
}

TEST(Linear, IsTheProductWithTheTransposedWeightPlusBias) {
  const Tensor x = tensor({{1, 2}}), weight = tensor({{1, 0}, {0, 1}, {1, 1}}),
               bias = tensor({10, 20, 30});
  EXPECT_THAT(linear(x, weight, bias).to_vector<float>(), ElementsAre(11, 22, 33));
  EXPECT_THAT(linear(x, weight).to_vector<float>(), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace brrr
