#include "brrr/ops/view/update_slice.h"

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/index/index_select.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

TensorTypes infer_update_slice(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  const Shape &x = call.shape(0), &source = call.shape(1), &position = call.shape(2);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.size(), "update_slice");
  check(call.dtype(1) == call.dtype(0), "update_slice: x is ", call.dtype(0), " and the source ",
        call.dtype(1), "; cast one of them");
  bool fits = source.size() == x.size();
  for (int a = 0; fits && a < x.size(); ++a) {
    fits = a == axis ? source[a] <= x[a] : source[a] == x[a];
  }
  check(fits, "update_slice: a source of shape ", source, " does not fit into shape ", x,
        "; only axis ", axis, " may be smaller");
  const bool one = position == Shape{} || position == Shape{1};
  check(call.dtype(2) == DType::i64 && (one || (axis > 0 && position == Shape{x[0]})),
        "update_slice: the position is ", call.dtype(2), " of shape ", position,
        "; it must be one i64, of shape [] or [1], or one for each of the ", x.empty() ? 0 : x[0],
        " rows where the axis is not the first");
  return {{x, call.dtype(0)}};
}

void require_inside(int64_t position, const Shape& x, const Shape& source, int axis) {
  const int64_t last = x[axis] - source[axis];
  check(position >= 0 && position <= last, "update_slice: position ", position,
        " puts a source of size ", source[axis], " outside axis ", axis, " of shape ", x,
        "; use 0 <= position <= ", last);
}

void copy_part(const KernelCall& call, const Operand& from, const Layout& read,
               const Layout& write) {
  const Operand a{from.base, &read, from.dtype}, b{call.output(0).base, &write, from.dtype};
  kernels::run_copy({call.op, {&a, 1}, {&b, 1}, call.attrs, {}, call.pool});
}

// What lies before, in and behind the hole is copied once each; where the output is x's own memory, the
// hole alone is written.
void fill_hole(const KernelCall& call, int axis, int64_t begin, Slice rows) {
  const Operand &x = call.input(0), &source = call.input(1), &output = call.output(0);
  const bool all_rows = rows.stop - rows.start == x.shape()[0];
  const auto part = [&](const Operand& operand, Slice range) {
    const Layout layout = slice_layout(*operand.layout, axis, range);
    return all_rows ? layout : slice_layout(layout, 0, rows);
  };
  const int64_t end = begin + source.shape()[axis], size = x.shape()[axis];
  if (x.base != output.base || *x.layout != *output.layout) {
    copy_part(call, x, part(x, {0, begin}), part(output, {0, begin}));
    copy_part(call, x, part(x, {end, size}), part(output, {end, size}));
  }
  copy_part(call, source, part(source, {0, end - begin}), part(output, {begin, end}));
}

void update_slice_cpu(const KernelCall& call) {
  const Shape &x = call.input(0).shape(), &source = call.input(1).shape();
  const int axis = normalize_axis(call.attrs.integer("axis"), x.size(), "update_slice");
  const Operand& position = call.input(2);
  const int64_t count = numel(position.shape()),
                stride = position.shape().empty() ? 0 : position.layout->strides[0];
  const auto begin = [&](int64_t i) { return position.data<int64_t>()[i * stride]; };
  for (int64_t i = 0; i < count; ++i) require_inside(begin(i), x, source, axis);
  if (count == 1) {
    fill_hole(call, axis, begin(0), {0, x[0]});
    return;
  }
  for (int64_t row = 0; row < count; ++row) fill_hole(call, axis, begin(row), {row, row + 1});
}

// The elements of y in the hole: a slice at a place that is data.
Tensor read_hole(const Tensor& y, int axis, const Shape& hole, const Tensor& position) {
  const Tensor steps =
      arange(0, static_cast<double>(hole[axis]), 1, {.dtype = DType::i64, .device = y.device()});
  if (position.numel() == 1) return index_select(y, axis, reshape(position, {1}) + steps);
  Shape rows(hole.size(), 1), along(hole.size(), 1);
  rows[0] = hole[0];
  along[axis] = hole[axis];
  return gather(y, axis, contiguous(expand(reshape(position, rows) + reshape(steps, along), hole)));
}

Tensors update_slice_grad(const GradCall& call) {
  const Tensor &x = call.input(0), &source = call.input(1), &position = call.input(2);
  const Tensor& dy = call.output_grad(0);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.rank(), "update_slice");
  Tensors grads(3);
  if (call.wants(0)) {
    const Tensor hole = zeros(source.shape(), {source.dtype(), dy.device()});
    grads[0] = update_slice(dy, axis, hole, position);
  }
  if (call.wants(1)) grads[1] = read_hole(dy, axis, source.shape(), position);
  return grads;
}

Tensors update_slice_reference(const ComposeCall& call) {
  const Tensor &x = call.input(0), &source = call.input(1);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.rank(), "update_slice");
  const std::vector<int64_t> begins = call.input(2).to_vector<int64_t>();
  const Tensor y = empty(x.shape(), x.dtype());
  const auto put = [&](const Tensor& values, const Layout& places) {
    const std::vector<double> numbers = values.to_vector<double>();
    size_t next = 0;
    for_each_element(places, [&](int64_t i) { store_float(y, i, numbers[next++]); });
  };
  const auto hole = [&](int64_t begin) {
    return slice_layout(y.layout(), axis, {begin, begin + source.shape()[axis]});
  };
  put(x, y.layout());
  if (begins.size() == 1) put(source, hole(begins[0]));
  for (int64_t row = 0; begins.size() > 1 && row < x.dim(0); ++row) {
    put(slice(source, 0, {row, row + 1}),
        slice_layout(hole(begins[static_cast<size_t>(row)]), 0, {row, row + 1}));
  }
  return {y};
}

Tensor position_of(int64_t value, const Shape& shape) {
  return from_values(std::vector<int64_t>{value}, shape);
}

std::vector<Sample> update_slice_samples() {
  const auto along = [](int64_t axis) { return Attrs{{"axis", axis}}; };
  return {
      {{sample_values({5, 3}, 250), sample_values({2, 3}, 251), position_of(1, {})}, along(0)},
      {{sample_values({2, 4}, 252), sample_values({2, 1}, 253), position_of(3, {1})}, along(-1)},
      {{sample_values({2, 3, 2}, 254), sample_values({2, 3, 2}, 255), position_of(0, {})},
       along(1)},
      {{sample_values({3}, 256), sample_values({0}, 257), position_of(3, {})}, along(0)},
      {{sample_values({1}, 258), sample_values({1}, 259), position_of(0, {1})}, along(0)},
      {{sample_values({0, 2}, 260), sample_values({0, 1}, 261), position_of(1, {})}, along(1)},
      {{sample_values({4, 300, 20}, 262), sample_values({4, 40, 20}, 263), position_of(170, {1})},
       along(1)},
      {{sample_values({3, 5, 2}, 264), sample_values({3, 2, 2}, 265),
        from_values(std::vector<int64_t>{3, 0, 1}, {3})},
       along(1)},
      {{sample_values({2, 3, 40, 8}, 266), sample_values({2, 3, 1, 8}, 267),
        from_values(std::vector<int64_t>{39, 7}, {2})},
       along(2)}};
}

}  // namespace

const OpDef update_slice_op{
    .name = "update_slice",
    .formula = "x with source at [position, position + n) of an axis, for each row or for all",
    .kind = OpKind::other,
    .dtypes = kAnyDType,
    .flops_per_element = 0,
    .infer = infer_update_slice,
    .grad = update_slice_grad,
    .grad_reads = {.inputs = 0b100},
    .reference = update_slice_reference,
    .cpu = update_slice_cpu,
    .overwrites = {.input = 0, .output = 0},
    .samples = update_slice_samples};

Tensor update_slice(const Tensor& x, int64_t axis, const Tensor& source, const Tensor& position) {
  return call_one(update_slice_op, {x, source, position}, {{"axis", axis}});
}

}  // namespace brrr
