// Kernels over rows on a GPU against the CPU: rows that a warp, a block or no register file holds, odd and
// unaligned ones, views at one, two and more pitches, every dtype; and the same bits twice.
#include "cuda/rows.h"

namespace brrr {
namespace {

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
    for (const auto& [rows, cols] :
         {RowCase{4801, 264}, RowCase{2503, 512}, RowCase{2003, 768}, RowCase{1503, 1024},
          RowCase{1001, 1536}, RowCase{701, 2048}, RowCase{401, 4096}, RowCase{301, 6144}}) {
      SCOPED_TRACE(join_text(to_text(dtype), " ", rows, " x ", cols));
      const Shape shape{rows, cols};
      const Both x(values(shape, dtype, 5)), dy(values(shape, dtype, 6)),
          around(values(shape, dtype, 9)), weight(values({cols}, DType::f32, 7)),
          bias(values({cols}, DType::f32, 8));
      const Attrs eps{{"eps", 1e-5}};
      const double tolerance = 4 * tolerance_of(dtype);
      const Tensors layer = expect_op(layer_norm_op, {x, weight, bias}, eps, tolerance_of(dtype)),
                    rms = expect_op(rms_norm_op, {x, weight}, eps, tolerance_of(dtype));
      const std::vector<Both> of_layer{x, weight, layer[1], layer[2], dy},
          of_rms{x, weight, rms[1], dy};
      for (const auto& [op, inputs] : {std::pair(&layer_norm_backward_op, of_layer),
                                       std::pair(&rms_norm_backward_op, of_rms)}) {
        std::vector<Both> adding = inputs;
        adding.push_back(around);
        expect_op(*op, inputs, {}, tolerance);
        expect_op(*op, adding, {}, tolerance);
      }
    }
  }
}

// Rows whose mean is many times what they vary by: differences are taken before they are scaled.
TEST(CudaRows, NormsOfRowsFarFromZero) {
  BRRR_NEEDS_GPU();
  for (int64_t cols : {768, 1024, 4096}) {
    const Both x(values({33, cols}, DType::f32, 51) + 200.0),
        dy(values({33, cols}, DType::f32, 52)), weight(values({cols}, DType::f32, 53));
    const Tensors layer = expect_op(layer_norm_op, {x, weight, weight}, {{"eps", 1e-5}}, 1e-4);
    expect_op(layer_norm_backward_op, {x, weight, layer[1], layer[2], dy}, {}, 1e-4);
  }
}

// Weights that are not whole chunks are read one by one.
TEST(CudaRows, NormsWithWeightsOfOddPlaces) {
  BRRR_NEEDS_GPU();
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (int64_t cols : {768, 4096}) {
      const Both x(values({19, cols}, dtype, 54)), dy(values({19, cols}, dtype, 55));
      const Both unaligned(values({cols + 1}, DType::f32, 56), [&](const Tensor& w) {
        return slice(w, 0, {1, cols + 1});
      });
      const Both strided(values({cols, 2}, DType::f32, 57),
                         [&](const Tensor& w) { return select(w, 1, 1); });
      for (const Both& weight : {unaligned, strided}) {
        const double tolerance = tolerance_of(dtype);
        const Tensors layer =
            expect_op(layer_norm_op, {x, weight, weight}, {{"eps", 1e-5}}, tolerance);
        expect_op(layer_norm_backward_op, {x, weight, layer[1], layer[2], dy}, {}, 2 * tolerance);
      }
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

// More rows than blocks, which keep one after another in shared memory; and rows that are longer than it.
TEST(CudaRows, SoftmaxOfManyLongRows) {
  BRRR_NEEDS_GPU();
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const auto& [rows, cols] : {RowCase{600, 9000}, RowCase{3, 131072}}) {
      const Both x(values({rows, cols}, dtype, 14));
      expect_op(softmax_op, {x}, {}, tolerance_of(dtype));
      expect_op(log_softmax_op, {x}, {}, tolerance_of(dtype));
    }
  }
}

TEST(CudaRows, InfinitiesAndNanInSoftmax) {
  BRRR_NEEDS_GPU();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (DType dtype : kRowDTypes) {
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

// Losses and gradients in one: rows of one to seven tiles, more of them than blocks, some that do not count.
TEST(CudaRows, ClassifierOfRowsOfEveryLength) {
  BRRR_NEEDS_GPU();
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const auto& [rows, cols] :
         {RowCase{1, 8}, RowCase{9, 33}, RowCase{1500, 264}, RowCase{1500, 2056},
          RowCase{300, 8192}, RowCase{31, 8200}, RowCase{30, 16392}, RowCase{30, 24584},
          RowCase{28, 32768}, RowCase{281, 50304}, RowCase{3, 131072}}) {
      if (dtype != DType::bf16 && cols > 9000) continue;
      SCOPED_TRACE(join_text(to_text(dtype), " ", rows, " x ", cols));
      const Both logits(values({rows, cols}, dtype, 61)), dloss(values({rows}, DType::f32, 62));
      const Both targets(randint({rows}, RandomKey{.seed = 3, .stream = 1, .draw = 63}, 0, cols - 3,
                                 {.dtype = DType::i64}));
      const int64_t first = targets.here.to_vector<int64_t>()[0];
      for (const Attrs& attrs :
           {Attrs{}, Attrs{{"classes", cols - 3}, {"label_smoothing", 0.1}, {"z_loss", 1e-3}},
            Attrs{{"ignore_index", first}}})
        expect_op(classifier_op, {logits, targets, dloss}, attrs, tolerance_of(dtype));
    }
  }
}

}  // namespace
}  // namespace brrr
