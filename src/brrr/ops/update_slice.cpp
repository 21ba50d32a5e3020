#include "brrr/ops/update_slice.h"

#include "brrr/graph/call.h"
#include "brrr/ops/binary.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/elementwise_cpu.h"
#include "brrr/ops/index_select.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/views.h"

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
  check(call.dtype(2) == DType::i64 && (position == Shape{} || position == Shape{1}),
        "update_slice: the position is ", call.dtype(2), " of shape ", position,
        "; it must be one i64, of shape [] or [1]");
  return {{x, call.dtype(0)}};
}

void require_inside(int64_t position, const Shape& x, const Shape& source, int axis) {
  const int64_t last = x[axis] - source[axis];
  check(position >= 0 && position <= last, "update_slice: position ", position,
        " puts a source of size ", source[axis], " outside axis ", axis, " of shape ", x,
        "; use 0 <= position <= ", last);
}

// What lies before, in and behind the hole is copied once each.
void update_slice_cpu(const KernelCall& call) {
  const Operand &x = call.input(0), &source = call.input(1), &output = call.output(0);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.shape().size(), "update_slice");
  const int64_t begin = *call.input(2).data<int64_t>();
  require_inside(begin, x.shape(), source.shape(), axis);
  const int64_t end = begin + source.shape()[axis], size = x.shape()[axis];
  const auto copy = [&](const Operand& from, Slice part, Slice place) {
    const Layout read = slice_layout(*from.layout, axis, part);
    const Layout write = slice_layout(*output.layout, axis, place);
    const Operand a{from.base, &read, from.dtype}, b{output.base, &write, output.dtype};
    run_copy({call.op, {&a, 1}, {&b, 1}, call.attrs, {}, call.pool});
  };
  copy(x, {0, begin}, {0, begin});
  copy(source, {0, end - begin}, {begin, end});
  copy(x, {end, size}, {end, size});
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
  if (call.wants(1)) {  // a slice at a place that is data
    const Tensor steps = arange(0, static_cast<double>(source.shape()[axis]), 1,
                                {.dtype = DType::i64, .device = dy.device()});
    grads[1] = index_select(dy, axis, reshape(position, {1}) + steps);
  }
  return grads;
}

Tensors update_slice_reference(const ComposeCall& call) {
  const Tensor &x = call.input(0), &source = call.input(1);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.rank(), "update_slice");
  const int64_t begin = load_int(call.input(2), call.input(2).offset());
  const Tensor y = empty(x.shape(), x.dtype());
  const auto put = [&](const Tensor& values, const Layout& places) {
    const std::vector<double> numbers = values.to_vector<double>();
    size_t next = 0;
    for_each_element(places, [&](int64_t i) { store_float(y, i, numbers[next++]); });
  };
  put(x, y.layout());
  put(source, slice_layout(y.layout(), axis, {begin, begin + source.shape()[axis]}));
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
       along(1)}};
}

}  // namespace

const OpDef update_slice_op{.name = "update_slice",
                            .formula = "x with source at [position, position + n) of an axis",
                            .kind = OpKind::other,
                            .dtypes = kAnyDType,
                            .flops_per_element = 0,
                            .infer = infer_update_slice,
                            .grad = update_slice_grad,
                            .grad_reads = {.inputs = 0b100},
                            .reference = update_slice_reference,
                            .cpu = update_slice_cpu,
                            .samples = update_slice_samples};

Tensor update_slice(const Tensor& x, int64_t axis, const Tensor& source, const Tensor& position) {
  return call_one(update_slice_op, {x, source, position}, {{"axis", axis}});
}

}  // namespace brrr
