#include "brrr/ops/view/triangle.h"

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

enum class Triangle : uint8_t { lower, upper };

TensorTypes infer_triangle(const InferCall& call) {
  check(call.shape(0).size() >= 2, call.op.name, ": shape ", call.shape(0),
        " has no rows and columns; give a tensor of rank 2 or more");
  return infer_same(call);
}

// The diagonal, brought to where it can still make a difference: row + diagonal must not overflow.
int64_t diagonal_of(const Attrs& attrs, const Shape& shape) {
  return std::clamp(attrs.integer("diagonal"), -shape[shape.size() - 2], shape.back());
}

// Columns [begin, end) of a row are kept.
struct Kept {
  int64_t begin, end;
};
Kept kept_columns(Triangle triangle, int64_t row, int64_t diagonal, int64_t cols) {
  if (triangle == Triangle::lower) {
    return {0, std::clamp<int64_t>(row + diagonal + 1, 0, cols)};
  }
  return {std::clamp<int64_t>(row + diagonal, 0, cols), cols};
}

// Where row `row` of all rows, counted over the batches, begins.
int64_t row_position(const Layout& layout, int64_t row) {
  int64_t position = layout.offset;
  for (int axis = layout.rank() - 2; axis >= 0; --axis) {
    position += row % layout.shape[axis] * layout.strides[axis];
    row /= layout.shape[axis];
  }
  return position;
}

// x, y: [..., rows, cols].  A piece owns whole rows.
template <Triangle triangle>
void triangle_cpu(const KernelCall& call) {
  const Operand &x = call.input(0), &y = call.output(0);
  if (y.count() == 0) return;
  const int64_t cols = y.shape().back(), rows = y.shape()[y.shape().size() - 2];
  const int64_t all_rows = y.count() / cols, diagonal = diagonal_of(call.attrs, y.shape());
  const int64_t from_step = x.layout->strides.back(), to_step = y.layout->strides.back();
  const int64_t piece_rows = std::max<int64_t>(1, kernels::kPieceElements / cols);
  visit_dtype(y.dtype, [&]<typename T>() {
    const auto run_piece = [&](int64_t piece) {
      const int64_t end = std::min(all_rows, (piece + 1) * piece_rows);
      for (int64_t row = piece * piece_rows; row < end; ++row) {
        const T* from = reinterpret_cast<const T*>(x.base) + row_position(*x.layout, row);
        T* to = reinterpret_cast<T*>(y.base) + row_position(*y.layout, row);
        const Kept kept = kept_columns(triangle, row % rows, diagonal, cols);
        for (int64_t col = 0; col < kept.begin; ++col) to[col * to_step] = T{};
        for (int64_t col = kept.begin; col < kept.end; ++col) {
          to[col * to_step] = from[col * from_step];
        }
        for (int64_t col = kept.end; col < cols; ++col) to[col * to_step] = T{};
      }
    };
    call.pool.for_each_piece((all_rows + piece_rows - 1) / piece_rows, run_piece);
  });
}

template <Triangle triangle>
Tensors triangle_compose(const ComposeCall& call) {
  const Tensor& x = call.input(0);
  const TensorOptions index{.dtype = DType::i64, .device = x.device()};
  const Tensor row = unsqueeze(arange(0, static_cast<double>(x.dim(-2)), 1, index), 1);
  const Tensor col = arange(0, static_cast<double>(x.dim(-1)), 1, index);
  const Tensor edge = row + diagonal_of(call.attrs, x.shape());
  const Tensor kept = triangle == Triangle::lower ? col <= edge : col >= edge;
  // A zero of x's own dtype: the number 0 would turn bools into integers.
  return {where(kept, x, zeros({}, {.dtype = x.dtype(), .device = x.device()}))};
}

std::vector<Sample> triangle_samples() {
  const auto at = [](int64_t diagonal) { return Attrs{{"diagonal", diagonal}}; };
  return {{{sample_values({4, 4}, 70)}, at(0)},
          {{sample_values({3, 5}, 71)}, at(1)},
          {{sample_values({5, 3}, 72)}, at(-2)},
          {{sample_values({2, 3, 4}, 73)}, at(2)},
          {{sample_values({3, 3}, 74)}, at(INT64_MAX)},
          {{sample_values({3, 3}, 75)}, at(INT64_MIN)},
          {{sample_values({1, 1}, 76)}, at(0)},
          {{sample_values({2, 0, 3}, 77)}, at(0)},
          {{sample_values({3, 0}, 78)}, at(-1)},
          {{sample_values({2, 150, 170}, 79)}, at(-20)}};  // several pieces
}

}  // namespace

const OpDef tril_op{.name = "tril",
                    .formula = "x where col <= row + diagonal, else 0",
                    .kind = OpKind::other,
                    .dtypes = kAnyDType,
                    .flops_per_element = 0,
                    .infer = infer_triangle,
                    .grad = [](const GradCall& call) -> Tensors {
                      return {tril(call.output_grad(0), call.attrs.integer("diagonal"))};
                    },
                    .compose = triangle_compose<Triangle::lower>,
                    .cpu = triangle_cpu<Triangle::lower>,
                    .samples = triangle_samples};

const OpDef triu_op{.name = "triu",
                    .formula = "x where col >= row + diagonal, else 0",
                    .kind = OpKind::other,
                    .dtypes = kAnyDType,
                    .flops_per_element = 0,
                    .infer = infer_triangle,
                    .grad = [](const GradCall& call) -> Tensors {
                      return {triu(call.output_grad(0), call.attrs.integer("diagonal"))};
                    },
                    .compose = triangle_compose<Triangle::upper>,
                    .cpu = triangle_cpu<Triangle::upper>,
                    .samples = triangle_samples};

Tensor tril(const Tensor& x, int64_t diagonal) {
  return call_one(tril_op, {x}, {{"diagonal", diagonal}});
}
Tensor triu(const Tensor& x, int64_t diagonal) {
  return call_one(triu_op, {x}, {{"diagonal", diagonal}});
}

}  // namespace brrr
