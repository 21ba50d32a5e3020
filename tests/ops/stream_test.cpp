// Results too large for the caches are written past them. The sweep's samples are small, so here the
// rows of one large call are held against the same rows in small ones: the bits must agree.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "brrr/brrr.h"
#include "brrr/kernels/cpu/elementwise/stream_cpu.h"
#include "brrr/ops/op_list.h"

namespace brrr {
namespace {

constexpr int64_t kRows = 2200, kCols = 4001;  // rows start at every alignment

Tensor values(uint64_t seed) { return normal({kRows, kCols}, Random(seed).stream("values")); }

Tensor rows_of(const Tensor& x, int64_t begin, int64_t end) {
  return x.rank() > 0 && x.dim(0) == kRows ? slice(x, 0, {begin, end}) : x;
}

// The first result of `op` on everything, against that on the first, a middle and the last rows.
void expect_rows_alike(const OpDef& op, const Tensors& inputs, const Attrs& attrs = {}) {
  const Tensor whole = call_op(op, inputs, attrs)[0];
  ASSERT_GE(whole.bytes().value(), kernels::kStreamBytes) << op.name << " is not streamed";
  for (int64_t begin : {int64_t{0}, kRows / 2, kRows - 3}) {
    Tensors few;
    for (const Tensor& input : inputs) few.push_back(rows_of(input, begin, begin + 3));
    const Tensor expected = call_op(op, few, attrs)[0];
    const Tensor got = contiguous(rows_of(whole, begin, begin + 3));
    EXPECT_EQ(std::memcmp(got.data<float>(), expected.data<float>(),
                          static_cast<size_t>(got.bytes().value())),
              0)
        << op.name << ", rows from " << begin;
  }
}

TEST(Stream, RowKernelsGiveTheBitsOfSmallCalls) {
  NoGrad no_tape;
  const Tensor x = values(1), dy = values(2), weight = normal({kCols}, Random(3).stream("w"));
  const Tensor rows = ones({kRows});
  expect_rows_alike(softmax_op, {x});
  expect_rows_alike(log_softmax_op, {x});
  expect_rows_alike(softmax_backward_op, {x, dy});
  expect_rows_alike(log_softmax_backward_op, {x, dy});
  expect_rows_alike(layer_norm_op, {x, weight, weight}, {{"eps", 1e-5}});
  expect_rows_alike(layer_norm_backward_op, {x, weight, rows, rows, dy});
  expect_rows_alike(rms_norm_op, {x, weight}, {{"eps", 1e-5}});
  expect_rows_alike(rms_norm_backward_op, {x, weight, rows, dy});
  const Tensor targets = cast(full({kRows}, 4000), DType::i64);
  expect_rows_alike(cross_entropy_backward_op, {x, targets, rows, rows});
  expect_rows_alike(cross_entropy_backward_op, {x, targets, rows, rows}, {{"soft_cap", 5.0}});
}

TEST(Stream, ElementwiseKernelsGiveTheBitsOfSmallCalls) {
  NoGrad no_tape;
  const Tensor x = values(4), y = values(5);
  expect_rows_alike(gelu_op, {x});
  expect_rows_alike(gelu_backward_op, {x, y});
  expect_rows_alike(add_op, {x, y});
  expect_rows_alike(copy_op, {x});
}

TEST(Stream, CopiesAnyAlignmentAndLength) {
  std::vector<float> from(200), to(200);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i + 1);
  for (size_t start : {0, 1, 7, 15, 16}) {
    for (size_t count : {0, 1, 15, 16, 17, 64, 100}) {
      std::fill(to.begin(), to.end(), 0.0f);
      kernels::stream_copy(&to[start], from.data(), static_cast<int64_t>(count * sizeof(float)));
      kernels::finish_stream();
      for (size_t i = 0; i < to.size(); ++i) {
        const bool inside = i >= start && i < start + count;
        ASSERT_EQ(to[i], inside ? from[i - start] : 0.0f) << start << " " << count << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace brrr
