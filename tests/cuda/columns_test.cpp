// Sums down columns and of rows that ids name on a GPU against the CPU, and generated kernels of many elements.
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/runtime/compile.h"
#include "cuda/rows.h"

namespace brrr {
namespace {

// Reductions of eager ops down columns: strips of whole chunks, and columns one by one.
TEST(CudaRows, ReductionsOfColumns) {
  BRRR_NEEDS_GPU();
  const Attrs of_columns{{"axes", Axes{0}}, {"keep_dims", false}};
  for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32}) {
    for (const auto& [rows, cols] :
         {RowCase{2, 8}, RowCase{63, 8}, RowCase{64, 264}, RowCase{129, 264}, RowCase{7, 768},
          RowCase{5003, 768}, RowCase{20003, 264}, RowCase{999, 33}, RowCase{3001, 2056},
          RowCase{130, 40000}}) {
      for (View view : {View::whole, View::aligned, View::unaligned}) {
        const bool is_large = rows * cols > 1'000'000;
        if (is_large && (view == View::aligned || dtype == DType::f16 || dtype == DType::f64))
          continue;
        SCOPED_TRACE(
            join_text(to_text(dtype), " ", rows, " x ", cols, " view ", static_cast<int>(view)));
        const Both x = rows_of(rows, cols, dtype, view, 71);
        for (const OpDef* op : {&sum_op, &mean_op, &max_op, &min_op}) {
          if (dtype == DType::i32 && op == &mean_op) continue;
          expect_op(*op, {x}, of_columns, is_float(dtype) ? tolerance_of(dtype) : 0);
        }
      }
    }
  }
}

// Ids so often, in order of the rows; rows of many ids begin and end anywhere in a piece of 64.
std::vector<int64_t> repeated_ids(const std::vector<int64_t>& counts) {
  std::vector<int64_t> ids;
  for (size_t row = 0; row < counts.size(); ++row)
    ids.insert(ids.end(), static_cast<size_t>(counts[row]), static_cast<int64_t>(row));
  std::vector<int64_t> mixed(
      ids.size());  // 7919 is prime: every place once, unless it divides them
  for (size_t i = 0; i < ids.size(); ++i) mixed[i * 7919 % ids.size()] = ids[i];
  return mixed;
}

TEST(CudaRows, GradientsOfEmbeddings) {
  BRRR_NEEDS_GPU();
  const std::vector<std::vector<int64_t>> all_counts = {
      {1},
      {63, 64, 65, 1, 0, 128, 129, 2},
      {64, 64, 64, 65, 64},
      {65, 65, 65, 65},
      {0, 130, 0, 0, 1000, 3, 62, 70, 58, 200, 0},
      {0, 0, 65536},
      std::vector<int64_t>(3000, 1),
      {5000, 2500, 1666, 1250, 1000, 833, 714, 625, 555, 500, 45, 41, 38, 35, 33, 31, 29}};
  for (const std::vector<int64_t>& counts : all_counts) {
    const std::vector<int64_t> ids = repeated_ids(counts);
    const auto count = static_cast<int64_t>(ids.size()), rows = static_cast<int64_t>(counts.size());
    std::vector<int64_t> twice = ids;
    twice.insert(twice.end(), ids.begin(), ids.end());
    const Both places(from_values(ids, {count})), in_blocks(from_values(twice, {2, count}));
    for (DType dtype : kRowDTypes) {
      for (int64_t dim : {4, 33, 264, 770, 1028}) {
        if (count > 2000 && (dim > 264 || (count > 20000 && dtype == DType::f64))) continue;
        for (View view : {View::whole, View::aligned, View::unaligned, View::blocks}) {
          if (count > 2000 && view != View::whole) continue;
          SCOPED_TRACE(join_text(to_text(dtype), " ", count, " ids of ", rows, " rows, ", dim,
                                 " columns, view ", static_cast<int>(view)));
          const Both dy = rows_of(count, dim, dtype, view, 81);
          expect_op(embedding_grad_op, {dy, view == View::blocks ? in_blocks : places},
                    {{"rows", rows}}, dtype == DType::f32 ? 1e-4 : tolerance_of(dtype));
        }
      }
    }
  }
}

// Kernels that are generated: two packs a thread with a rest behind them, and sums that read ahead.
TEST(CudaRows, GeneratedKernelsOfManyElements) {
  BRRR_NEEDS_GPU();
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const int64_t packs = int64_t{1} << 20, pack = dtype == DType::f32 ? 4 : 8;
    for (int64_t count : {packs * pack + 12345, packs * pack}) {
      const Both x(values({count}, dtype, 31));
      expect_op(gelu_tanh_op, {x}, {}, tolerance_of(dtype));
      expect_op(silu_op, {x}, {}, tolerance_of(dtype));
      expect_op(gelu_tanh_backward_op, {x, Both(values({count}, dtype, 32))}, {},
                tolerance_of(dtype));
    }
  }
}

// Columns that one input is summed down, with more loads under way; many parts are joined, and each result once.
TEST(CudaRows, GeneratedSumsOfColumns) {
  BRRR_NEEDS_GPU();
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const Shape& shape :
         {Shape{2, 40}, Shape{65, 768}, Shape{700, 1032}, Shape{30011, 768}, Shape{4001, 2304},
          Shape{2048, 3072}, Shape{999, 33}, Shape{5, 777, 264}, Shape{3, 129, 10000}}) {
      if (dtype == DType::f16 && numel(shape) > 5'000'000) continue;
      SCOPED_TRACE(join_text(to_text(dtype), " ", to_text(shape)));
      const Tensor x = values(shape, dtype, 43);
      const auto f = [&](const Tensor& a) {
        const Tensor wide = cast(a, DType::f32);
        return Tensors{sum(wide, Axes{shape.size() - 2}), max(wide, Axes{shape.size() - 2})};
      };
      auto cpu = runtime::compile(f), gpu = runtime::compile(f);
      const Tensor there = to(x, kGpu);
      const Tensors expected = cpu(x), got = gpu(there), again = gpu(there);
      for (int i = 0; i < 2; ++i) {
        expect_close(expected[i], got[i], 1e-4);
        expect_close(to(got[i], Device::cpu()), again[i], 0);
      }
    }
  }
}

TEST(CudaRows, FusedSumsOfColumnsAndRows) {
  BRRR_NEEDS_GPU();
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const Shape& shape :
         {Shape{1, 768}, Shape{7, 768}, Shape{3000, 768}, Shape{20003, 264}, Shape{999, 33}}) {
      const Tensor x = values(shape, dtype, 41), y = values(shape, dtype, 42);
      for (const Axes& axes : {Axes{0}, Axes{1}, Axes{0, 1}}) {
        const auto f = [&](const Tensor& a, const Tensor& b) {
          const Tensor both = gelu_tanh(a) + b;
          return Tensors{both, sum(cast(both, DType::f32), axes)};
        };
        auto cpu = runtime::compile(f), gpu = runtime::compile(f);
        const Tensors expected = cpu(x, y), got = gpu(to(x, kGpu), to(y, kGpu));
        for (int i = 0; i < 2; ++i)
          expect_close(expected[i], got[i], i == 0 ? tolerance_of(dtype) : 1e-3);
      }
    }
  }
}

}  // namespace
}  // namespace brrr
