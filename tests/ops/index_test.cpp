#include "brrr/ops/index/index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/autodiff/grad.h"
#include "brrr/base/thread_pool.h"
#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }
Tensor integers(const Literal& list) { return tensor(list, DType::i64); }

TEST(Gather, PicksAlongEachAxis) {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  const Tensor columns = gather(x, 1, integers({{2, 0}, {1, 1}}));
  EXPECT_EQ(columns.shape(), (Shape{2, 2}));
  EXPECT_THAT(values(columns), ElementsAre(3, 1, 5, 5));
  EXPECT_THAT(values(gather(x, 0, integers({{1, 0, 1}}))), ElementsAre(4, 2, 6));
  EXPECT_THAT(values(gather(x, -1, integers({{1, 1, 1, 0}}))), ElementsAre(2, 2, 2, 1));
}

TEST(Gather, TakesI32IndicesAndStridedOperands) {
  const Tensor x = transpose(tensor({{1, 4}, {2, 5}, {3, 6}}));  // [[1, 2, 3], [4, 5, 6]]
  const Tensor index = transpose(tensor({{2, 1}, {0, 1}}, DType::i32));
  EXPECT_THAT(values(gather(x, 1, index)), ElementsAre(3, 1, 5, 5));
}

TEST(Gather, OfNothingIsNothing) {
  const Tensor y = gather(zeros({3, 0}), 1, zeros({2, 0}, {.dtype = DType::i64}));
  EXPECT_EQ(y.shape(), (Shape{2, 0}));
}

TEST(Gather, GradientAddsWhatWasPickedTwice) {
  const Tensor x = tensor({{1, 2, 3}});
  x.require_grad();
  sum(gather(x, 1, integers({{2, 2, 0, 2}}))).backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(1, 0, 3));
}

TEST(Gather, RefusesWithTheReason) {
  const Tensor x = zeros({2, 3});
  EXPECT_THAT(error_of([&] {
                gather(x, 1, integers({{0, 1}, {2, 3}}));
              }),
              HasSubstr("gather: index 3 at position [1, 1] is out of range for axis 1 of shape "
                        "[2, 3]; use 0 <= index < 3"));
  EXPECT_THAT(error_of([&] {
                gather(x, 0, integers({{0, -1}}));
              }),
              HasSubstr("gather: index -1 at position [0, 1] is out of range for axis 0"));
  EXPECT_THAT(error_of([&] {
                gather(x, 1, zeros({2, 1}));
              }),
              HasSubstr("gather: indices must be i64 or i32, not f32; cast them"));
  EXPECT_THAT(
      error_of([&] { gather(x, 1, integers({0})); }),
      HasSubstr("gather: x has shape [2, 3] and the index [1]; give the index as many axes"));
  EXPECT_THAT(error_of([&] {
                gather(x, 1, zeros({3, 1}, {DType::i64}));
              }),
              HasSubstr("gather: the index has size 3 on axis 0 where x has 2"));
  EXPECT_THAT(error_of([&] {
                gather(x, 2, zeros({1, 1}, {DType::i64}));
              }),
              HasSubstr("gather: axis 2"));
  EXPECT_THAT(error_of([&] {
                gather(zeros({0, 2}), 0, zeros({1, 1}, {DType::i64}));
              }),
              HasSubstr("use 0 <= index < 0"));
}

TEST(ScatterAdd, AddsAndLeavesItsInputAlone) {
  const Tensor x = tensor({{1, 1, 1}, {2, 2, 2}});
  const Tensor y = scatter_add(x, 1, integers({{0, 0}, {2, 1}}), tensor({{10, 20}, {30, 40}}));
  EXPECT_THAT(values(y), ElementsAre(31, 1, 1, 2, 42, 32));
  EXPECT_THAT(values(x), ElementsAre(1, 1, 1, 2, 2, 2));
  const Tensor z = scatter_add(x, 0, integers({{1, 0, 1}}), tensor({{10, 20, 30}}));
  EXPECT_THAT(values(z), ElementsAre(1, 21, 1, 12, 2, 32));
}

TEST(ScatterAdd, WrapsIntegers) {
  const Tensor x = tensor({250}, DType::u8);
  EXPECT_THAT(values(scatter_add(x, 0, integers({0, 0}), tensor({5, 3}, DType::u8))),
              ElementsAre(2));
}

// 1 + 1/256 rounds back to 1 in bf16, so 256 single additions would change nothing.
TEST(ScatterAdd, AddsLowPrecisionInF32) {
  const Tensor x = tensor({1}, DType::bf16), ones_to_add = full({256}, 0.00390625, {DType::bf16});
  const Tensor y = scatter_add(x, 0, zeros({256}, {.dtype = DType::i64}), ones_to_add);
  EXPECT_EQ(y.item<double>(), 2);
}

TEST(ScatterAdd, GradientsAreTheGradientAndItsPicks) {
  const Tensor x = tensor({1, 2, 3}), source = tensor({5, 6});
  x.require_grad();
  source.require_grad();
  backward(scatter_add(x, 0, integers({2, 2}), source), {.seed = tensor({10, 20, 30})});
  EXPECT_THAT(values(x.grad()), ElementsAre(10, 20, 30));
  EXPECT_THAT(values(source.grad()), ElementsAre(30, 30));
}

TEST(ScatterAdd, RefusesWithTheReason) {
  const Tensor x = zeros({2, 3}), index = integers({{0, 1}});
  EXPECT_THAT(
      error_of([&] {
        scatter_add(x, 1, index, zeros({2, 2}));
      }),
      HasSubstr("scatter_add: the index has shape [1, 2] and the source [2, 2]; every source "
                "element needs one index"));
  EXPECT_THAT(error_of([&] {
                scatter_add(x, 1, index, zeros({1, 2}, {DType::f64}));
              }),
              HasSubstr("scatter_add: x is f32 and the source f64; cast one of them"));
  EXPECT_THAT(error_of([&] {
                scatter_add(x, 1, integers({{0, 3}}), zeros({1, 2}));
              }),
              HasSubstr("scatter_add: index 3 at position [0, 1] is out of range for axis 1"));
  EXPECT_THAT(error_of([&] {
                scatter_add(cast(x, DType::boolean), 1, index, zeros({1, 2}));
              }),
              HasSubstr("scatter_add: does not take bool operands"));
}

TEST(Scatter, ReplacesAndLeavesItsInputAlone) {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  EXPECT_THAT(values(scatter(x, 1, integers({{2}, {0}}), tensor({{10}, {20}}))),
              ElementsAre(1, 2, 10, 20, 5, 6));
  EXPECT_THAT(values(scatter(x, 0, integers({{1, 0}}), tensor({{10, 20}}))),
              ElementsAre(1, 20, 3, 10, 5, 6));
  EXPECT_THAT(values(x), ElementsAre(1, 2, 3, 4, 5, 6));
}

// By the kernel and by the composition, which is what runs where there is no kernel.
TEST(Scatter, TheLastWriterAlongTheAxisWins) {
  const Tensor x = zeros({2, 3}), source = tensor({{1, 2, 3, 4}, {5, 6, 7, 8}});
  const Tensor index = integers({{0, 2, 0, 2}, {1, 1, 1, 0}});
  const Attrs along{{"axis", int64_t{1}}};
  EXPECT_THAT(values(scatter(x, 1, index, source)), ElementsAre(3, 0, 4, 8, 7, 0));
  EXPECT_THAT(values(scatter_op.compose({Tensors{x, index, source}, along})[0]),
              ElementsAre(3, 0, 4, 8, 7, 0));
}

TEST(Scatter, OnlyTheWinnersHaveAGradient) {
  const Tensor x = tensor({1, 2, 3}), source = tensor({4, 5, 6});
  x.require_grad();
  source.require_grad();
  backward(scatter(x, 0, integers({2, 0, 2}), source), {.seed = tensor({10, 20, 30})});
  EXPECT_THAT(values(x.grad()), ElementsAre(0, 20, 0));
  EXPECT_THAT(values(source.grad()), ElementsAre(0, 10, 30));
}

TEST(Scatter, MovesElementsWithoutArithmetic) {
  const Tensor source = tensor({-0.0, NAN, INFINITY}, DType::bf16);
  const Attrs along{{"axis", int64_t{0}}};
  const Tensor x = zeros({3}, DType::bf16), index = integers({0, 1, 2});
  for (const Tensor& y :
       {scatter(x, 0, index, source), scatter_op.compose({Tensors{x, index, source}, along})[0]}) {
    EXPECT_TRUE(std::signbit(values(y)[0]));
    EXPECT_TRUE(std::isnan(values(y)[1]));
    EXPECT_EQ(values(y)[2], INFINITY);
  }
  const Tensor flags = tensor({0, 1, 1}, DType::boolean);
  EXPECT_THAT(values(scatter(flags, 0, integers({2}), tensor({0}, DType::boolean))),
              ElementsAre(0, 1, 0));
}

TEST(Scatter, RefusesWithTheReason) {
  const Tensor x = zeros({2, 3}), index = integers({{0, 1}});
  EXPECT_EQ(
      error_of([&] {
        scatter(x, 1, index, zeros({2, 2}));
      }),
      "scatter: the index has shape [1, 2] and the source [2, 2]; every source element needs one "
      "index");
  EXPECT_THAT(error_of([&] {
                scatter(x, 1, integers({{0, 3}}), zeros({1, 2}));
              }),
              HasSubstr("index 3"));
}

TEST(Embedding, PicksRows) {
  const Tensor table = tensor({{1, 2}, {3, 4}, {5, 6}});
  const Tensor y = embedding(table, integers({{2, 0}, {1, 1}}));
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(values(y), ElementsAre(5, 6, 1, 2, 3, 4, 3, 4));
  EXPECT_EQ(embedding(table, tensor(1, DType::i32)).shape(), (Shape{2}));
  const Tensor strided = transpose(tensor({{1, 3, 5}, {2, 4, 6}}));
  EXPECT_THAT(values(embedding(strided, integers({2, 0}))), ElementsAre(5, 6, 1, 2));
}

TEST(Embedding, RefusesWithTheReason) {
  const Tensor table = zeros({5, 4});
  EXPECT_THAT(error_of([&] {
                embedding(table, integers({{0, 1}, {4, 5}}));
              }),
              HasSubstr("embedding: index 5 at position [1, 1] is out of range for axis 0 of shape "
                        "[5, 4]; use 0 <= index < 5"));
  EXPECT_THAT(error_of([&] { embedding(table, integers({-1})); }),
              HasSubstr("index -1 at position [0]"));
  EXPECT_THAT(error_of([&] { embedding(zeros({5}), integers({1})); }),
              HasSubstr("embedding: the table must be [rows, dim], not [5]"));
  EXPECT_THAT(error_of([&] { embedding(table, zeros({2})); }),
              HasSubstr("embedding: indices must be i64 or i32, not f32"));
}

TEST(Embedding, GradientAddsRowsOfRepeatedIds) {
  const Tensor table = tensor({{1, 2}, {3, 4}, {5, 6}});
  table.require_grad();
  backward(embedding(table, integers({2, 0, 2})), {.seed = tensor({{1, 2}, {3, 4}, {10, 20}})});
  EXPECT_THAT(values(table.grad()), ElementsAre(3, 4, 0, 0, 11, 22));
}

TEST(Embedding, HasASecondGradient) {
  const Tensor dy = tensor({{1, 2}, {3, 4}}), ids = integers({1, 1});
  dy.require_grad();
  const Tensor summed = call_one(embedding_grad_op, {dy, ids}, {{"rows", int64_t{3}}});
  backward(summed, {.seed = tensor({{1, 2}, {3, 4}, {5, 6}})});
  EXPECT_THAT(values(dy.grad()), ElementsAre(3, 4, 3, 4));
}

TEST(EmbeddingGrad, AddsLowPrecisionInF32) {
  const Tensor dy = full({257, 1}, 0.00390625, {DType::bf16});
  dy.data<bf16>()[0] = bf16(1.0F);
  const Tensor sums =
      call_one(embedding_grad_op, {dy, zeros({257}, {DType::i64})}, {{"rows", int64_t{2}}});
  EXPECT_EQ(sums.dtype(), DType::bf16);
  EXPECT_THAT(values(sums), ElementsAre(2, 0));
}

TEST(EmbeddingGrad, RefusesWithTheReason) {
  const auto call = [](const Tensor& dy, const Tensor& ids, int64_t rows) {
    return error_of([&] { call_one(embedding_grad_op, {dy, ids}, {{"rows", rows}}); });
  };
  EXPECT_THAT(call(zeros({3, 2}), integers({0, 1}), 4),
              HasSubstr("embedding_grad: ids of shape [2] need dy of that shape and one more axis, "
                        "not [3, 2]"));
  EXPECT_THAT(
      call(zeros({2, 2}), integers({0, 4}), 4),
      HasSubstr("embedding_grad: index 4 at position [1] is out of range for axis 0 of shape "
                "[4, 2]"));
  EXPECT_THAT(call(zeros({2, 2}), integers({0, 1}), -1), HasSubstr("a table of -1 rows"));
}

TEST(Embedding, CostsTheRowsItReadsAndNotTheTable) {
  const Tensor table = zeros({1000, 8}), ids = integers({1, 2, 3});
  CostCounter counter;
  embedding(table, ids);
  EXPECT_EQ(counter.total(),
            (Cost{.flops = 0, .bytes_read = 3 * 8 * 4 + 3 * 8, .bytes_written = 3 * 8 * 4}));
}

TEST(EmbeddingGrad, CostsOneAdditionForEachElement) {
  const Tensor dy = zeros({3, 8}), ids = integers({1, 2, 3});
  CostCounter counter;
  call_one(embedding_grad_op, {dy, ids}, {{"rows", int64_t{10}}});
  EXPECT_EQ(counter.total(),
            (Cost{.flops = 24, .bytes_read = 3 * 8 * 4 + 3 * 8, .bytes_written = 10 * 8 * 4}));
}

// Every result must have the same bits for any number of threads.
template <typename Make>
void expect_same_bits(Make make) {
  set_num_threads(1);
  const std::vector<double> expected = values(make());
  for (int threads : {2, 5}) {
    set_num_threads(threads);
    EXPECT_EQ(values(make()), expected) << threads << " threads";
  }
  set_num_threads(available_cores());
}

TEST(IndexThreads, ScatterAddGivesTheSameBits) {
  const Tensor wide = cast(sample_values({7, 2000}, 1), DType::f32);
  const Tensor source = cast(sample_values({50, 2000}, 2), DType::f32);
  const Tensor index = sample_indices({50, 2000}, 3, 7);
  expect_same_bits([&] { return scatter_add(wide, 0, index, source); });
  expect_same_bits(
      [&] { return scatter_add(transpose(wide), 1, transpose(index), transpose(source)); });
  const Tensor flat = cast(sample_values({100}, 4), DType::bf16);
  const Tensor ids = sample_indices({50000}, 5, 100);
  const Tensor added = cast(sample_values({50000}, 6), DType::bf16);
  expect_same_bits([&] { return scatter_add(flat, 0, ids, added); });
}

TEST(IndexThreads, EmbeddingAndItsGradientGiveTheSameBits) {
  const Tensor table = cast(sample_values({40, 300}, 7), DType::f32);
  const Tensor ids = sample_indices({20, 30}, 8, 40);
  const Tensor dy = cast(sample_values({20, 30, 300}, 9), DType::f32);
  expect_same_bits([&] { return embedding(table, ids); });
  expect_same_bits([&] { return call_one(embedding_grad_op, {dy, ids}, {{"rows", int64_t{40}}}); });
  expect_same_bits([&] { return gather(table, 1, sample_indices({40, 900}, 10, 300)); });
}

TEST(IndexThreads, TheFirstBadIndexIsReported) {
  const Tensor table = zeros({4, 2});
  const Tensor ids = zeros({100000}, {.dtype = DType::i64});
  ids.data<int64_t>()[60000] = 9;
  ids.data<int64_t>()[30001] = 7;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    EXPECT_THAT(error_of([&] { embedding(table, ids); }), HasSubstr("index 7 at position [30001]"));
  }
  set_num_threads(available_cores());
}

}  // namespace
}  // namespace brrr
