// Kernels over rows on a GPU against the CPU: rows that a warp, a block or no register file holds, odd and
// unaligned ones, views at one, two and more pitches, every dtype; and the same bits twice.
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/ops/binary.h"
#include "brrr/ops/copy.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/random.h"
#include "brrr/ops/reduce.h"
#include "brrr/ops/unary.h"
#include "brrr/ops/views.h"
#include "brrr/runtime/compile.h"
#include "cuda/gpu.h"

namespace brrr {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};

Tensor values(const Shape& shape, DType dtype, uint32_t draw) {
  return cast(normal(shape, RandomKey{.seed = 12, .stream = 4, .draw = draw}), dtype);
}

// The same view of the same numbers on both devices.
struct Both {
  Tensor here, there;
  Both(const Tensor& x) : here(x), there(to(x, kGpu)) {}  // NOLINT(google-explicit-constructor)
  template <typename Fn>
  Both(const Tensor& whole, const Fn& view) : here(view(whole)), there(view(to(whole, kGpu))) {}
};

enum class View : uint8_t { whole, aligned, unaligned, blocks, permuted };

// Rows of `cols` elements, `rows` of them or some more.
Both rows_of(int64_t rows, int64_t cols, DType dtype, View view, uint32_t draw) {
  switch (view) {
    case View::whole: break;
    case View::aligned:
      return {values({rows, cols + 16}, dtype, draw), [&](const Tensor& x) {
                return slice(x, 1, {16, cols + 16});
              }};
    case View::unaligned:
      return {values({rows, cols + 1}, dtype, draw), [&](const Tensor& x) {
                return slice(x, 1, {1, cols + 1});
              }};
    case View::blocks:
      return {values({2, rows + 3, cols}, dtype, draw), [&](const Tensor& x) {
                return slice(x, 1, {2, rows + 2});
              }};
    case View::permuted:
      return {values({2, rows, 3, cols}, dtype, draw),
              [&](const Tensor& x) { return transpose(x, 0, 2); }};
  }
  return {values({rows, cols}, dtype, draw)};
}

double tolerance_of(DType dtype) {
  return dtype == DType::f64 ? 1e-12 : dtype == DType::f32 ? 1e-5 : 4 * finfo(dtype).eps;
}

// Relative to the largest element.
void expect_close(const Tensor& cpu, const Tensor& gpu, double tolerance) {
  const std::vector<double> a = cpu.to_vector<double>(),
                            b = to(gpu, Device::cpu()).to_vector<double>();
  ASSERT_EQ(a.size(), b.size());
  double scale = 1e-30;
  for (double value : a) scale = std::max(scale, std::isfinite(value) ? std::abs(value) : 0.0);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    ASSERT_LE(std::abs(a[i] - b[i]), tolerance * scale) << i << ": " << a[i] << " " << b[i];
  }
}

Tensors expect_op(const OpDef& op, const std::vector<Both>& inputs, const Attrs& attrs,
                  double tolerance) {
  SCOPED_TRACE(op.name);
  NoGrad no_tape;
  std::vector<Tensor> here, there;
  for (const Both& x : inputs) here.push_back(x.here), there.push_back(x.there);
  const Tensors expected = call_op(op, here, attrs), got = call_op(op, there, attrs),
                again = call_op(op, there, attrs);
  for (int i = 0; i < expected.size(); ++i) {
    expect_close(expected[i], got[i], tolerance);
    expect_close(to(got[i], Device::cpu()), again[i], 0);
  }
  return expected;
}

struct RowCase {
  int64_t rows, cols;
};
constexpr RowCase kCases[] = {{37, 8},    {9, 33},    {100, 264}, {300, 768}, {65, 1000},
                              {40, 1024}, {21, 1025}, {19, 1536}, {11, 2048}, {9, 2056},
                              {40, 4096}, {7, 5000},  {5, 8192},  {5, 12288}, {3, 16384},
                              {3, 50304}, {2, 50257}};
constexpr DType kDTypes[] = {DType::f32, DType::bf16, DType::f16, DType::f64};
constexpr View kViews[] = {View::whole, View::aligned, View::unaligned, View::blocks,
                           View::permuted};

// Calls body(rows, cols, dtype, view): every view of short rows, long ones whole and unaligned.
template <typename Body>
void for_each_case(const Body& body) {
  for (DType dtype : kDTypes) {
    for (View view : kViews) {
      for (const auto& [rows, cols] : kCases) {
        if (cols > 2048 && view != View::whole && view != View::unaligned) continue;
        SCOPED_TRACE(
            join_text(to_text(dtype), " ", rows, " x ", cols, " view ", static_cast<int>(view)));
        body(rows, cols, dtype, view);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(CudaRows, NormsOfRowsOfEveryLength) {
  BRRR_NEEDS_GPU();
  const Attrs eps{{"eps", 1e-5}};
  for_each_case([&](int64_t rows, int64_t cols, DType dtype, View view) {
    const Both x = rows_of(rows, cols, dtype, view, 1), dy = rows_of(rows, cols, dtype, view, 2);
    for (DType affine : {dtype, DType::f32}) {
      if (dtype == DType::f64 && affine != dtype) continue;  // they do not mix
      const Both weight(values({cols}, affine, 3)), bias(values({cols}, affine, 4));
      const double tolerance = tolerance_of(dtype);
      const Tensors layer = expect_op(layer_norm_op, {x, weight, bias}, eps, tolerance);
      const Tensors rms = expect_op(rms_norm_op, {x, weight}, eps, tolerance);
      expect_op(layer_norm_backward_op, {x, weight, layer[1], layer[2], dy}, {}, 2 * tolerance);
      expect_op(rms_norm_backward_op, {x, weight, rms[1], dy}, {}, 2 * tolerance);
      const Both around = rows_of(rows, cols, dtype, view, 9);
      expect_op(layer_norm_backward_op, {x, weight, layer[1], layer[2], dy, around}, {},
                2 * tolerance);
      expect_op(rms_norm_backward_op, {x, weight, rms[1], dy, around}, {}, 2 * tolerance);
    }
  });
}

// What is added to dx is added behind its rounding: the bits of an addition of its own.
TEST(CudaRows, NormsAddAsAnAdditionBehindThemDoes) {
  BRRR_NEEDS_GPU();
  NoGrad no_tape;
  for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    for (int64_t cols : {7, 384, 768, 1024, 1600, 5000}) {
      const auto there = [&](const Shape& shape, uint32_t draw) {
        return to(values(shape, dtype, draw), kGpu);
      };
      const Tensor x = there({515, cols}, 1), dy = there({515, cols}, 2),
                   around = there({515, cols}, 3), weight = there({cols}, 4);
      const auto run = [](const OpDef& op, const std::vector<Tensor>& inputs) {
        const bool is_forward = &op == &layer_norm_op || &op == &rms_norm_op;
        return call_op(op, inputs, is_forward ? Attrs{{"eps", 1e-5}} : Attrs{});
      };
      const auto expect_same = [](const Tensor& a, const Tensor& b) {
        expect_close(to(a, Device::cpu()), b, 0);
      };
      const Tensors norm = run(layer_norm_op, {x, weight, weight}),
                    rms = run(rms_norm_op, {x, weight});
      const std::vector<Tensor> layer{x, weight, norm[1], norm[2], dy}, root{x, weight, rms[1], dy};
      for (const auto& [op, inputs] :
           {std::pair(&layer_norm_backward_op, layer), std::pair(&rms_norm_backward_op, root)}) {
        std::vector<Tensor> adding = inputs;
        adding.push_back(around);
        const Tensors apart = run(*op, inputs), one = run(*op, adding);
        expect_same(around + apart[0], one[0]);
        for (int i = 1; i < one.size(); ++i) expect_same(apart[i], one[i]);
      }
    }
  }
}

// More rows than blocks at once: each team sums over several.
TEST(CudaRows, NormsOfManyRows) {
  BRRR_NEEDS_GPU();
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (int64_t cols : {768, 1024}) {
      const Both x(values({5003, cols}, dtype, 5)), dy(values({5003, cols}, dtype, 6)),
          weight(values({cols}, DType::f32, 7)), bias(values({cols}, DType::f32, 8));
      const Tensors layer =
          expect_op(layer_norm_op, {x, weight, bias}, {{"eps", 1e-5}}, tolerance_of(dtype));
      expect_op(layer_norm_backward_op, {x, weight, layer[1], layer[2], dy}, {},
                4 * tolerance_of(dtype));
    }
  }
}

TEST(CudaRows, SoftmaxOfRowsOfEveryLength) {
  BRRR_NEEDS_GPU();
  for_each_case([&](int64_t rows, int64_t cols, DType dtype, View view) {
    const double tolerance = tolerance_of(dtype);
    const Both x = rows_of(rows, cols, dtype, view, 11), dy = rows_of(rows, cols, dtype, view, 12);
    const Tensors y = expect_op(softmax_op, {x}, {}, tolerance),
                  log_y = expect_op(log_softmax_op, {x}, {}, tolerance);
    expect_op(softmax_backward_op, {y[0], dy}, {}, tolerance);
    expect_op(log_softmax_backward_op, {log_y[0], dy}, {}, 4 * tolerance);
  });
}

TEST(CudaRows, InfinitiesAndNanInSoftmax) {
  BRRR_NEEDS_GPU();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (DType dtype : kDTypes) {
    for (int64_t cols : {768, 4096, 16384}) {
      std::vector<double> numbers = values({5, cols}, DType::f64, 13).to_vector<double>();
      const auto row = [&](int64_t r) { return numbers.begin() + r * cols; };
      std::fill(row(0), row(1), -kInfinity);
      std::fill(row(1) + 3, row(2), -kInfinity);
      *(row(2) + 700) = kInfinity;
      *(row(3) + 5) = std::nan("");
      const Both x(cast(from_values(numbers, {5, cols}), dtype));
      expect_op(softmax_op, {x}, {}, tolerance_of(dtype));
      expect_op(log_softmax_op, {x}, {}, tolerance_of(dtype));
    }
  }
}

TEST(CudaRows, CrossEntropyOfRowsOfEveryLength) {
  BRRR_NEEDS_GPU();
  for_each_case([&](int64_t rows, int64_t cols, DType dtype, View view) {
    if (view == View::blocks || view == View::permuted) return;  // logits have two axes
    const Both logits = rows_of(rows, cols, dtype, view, 21);
    const Both targets(randint({rows}, RandomKey{.seed = 3, .stream = 1, .draw = 22}, 0, cols - 3,
                               {.dtype = DType::i64}));
    const int64_t first = targets.here.to_vector<int64_t>()[0];
    for (const Attrs& attrs :
         {Attrs{}, Attrs{{"label_smoothing", 0.1}, {"z_loss", 1e-3}}, Attrs{{"classes", cols - 3}},
          Attrs{{"soft_cap", 5.0}}, Attrs{{"ignore_index", first}}}) {
      const Tensors out =
          expect_op(cross_entropy_op, {logits, targets}, attrs, dtype == DType::f64 ? 1e-12 : 2e-5);
      const Both dloss(values({rows}, out[0].dtype(), 23));
      expect_op(cross_entropy_backward_op, {logits, targets, out[1], dloss}, attrs,
                tolerance_of(dtype));
    }
  });
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
        auto cpu = compile(f), gpu = compile(f);
        const Tensors expected = cpu(x, y), got = gpu(to(x, kGpu), to(y, kGpu));
        for (int i = 0; i < 2; ++i)
          expect_close(expected[i], got[i], i == 0 ? tolerance_of(dtype) : 1e-3);
      }
    }
  }
}

}  // namespace
}  // namespace brrr
