#include "brrr/ops/view/pad_roll.h"

#include "brrr/graph/call.h"
#include "brrr/kernels/calls/kernel_layouts.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

// ---- pad

TensorTypes infer_pad(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  const Axes &before = call.attrs.list("before"), &after = call.attrs.list("after");
  Shape shape = call.shape(0);
  check(before.size() == shape.size() && after.size() == shape.size(), "pad: widths ", before,
        " before and ", after, " after do not fit shape ", shape,
        "; give one of each for every axis");
  for (int axis = 0; axis < shape.size(); ++axis) {
    check(before[axis] >= 0 && after[axis] >= 0, "pad: widths ", before[axis], " before and ",
          after[axis], " after on axis ", axis,
          "; use widths >= 0, or slice() to cut off elements");
    check(!__builtin_add_overflow(shape[axis], before[axis], &shape[axis]) &&
              !__builtin_add_overflow(shape[axis], after[axis], &shape[axis]),
          "pad: widths ", before, " and ", after, " around shape ", call.shape(0),
          " are more than a 64-bit number can count");
  }
  return {{shape, call.dtype(0)}};
}

// The place of x in the padded result.
Layout inside_layout(Layout layout, const Attrs& attrs) {
  const Axes &before = attrs.list("before"), &after = attrs.list("after");
  for (int axis = 0; axis < layout.rank(); ++axis) {
    const int64_t size = layout.shape[axis];
    layout = slice_layout(layout, axis, {before[axis], size - after[axis]});
  }
  return layout;
}

// Fills the border slab by slab: on each axis what lies before and behind, inside the axes so far.
// Every element is written once.
void pad_cpu(const KernelCall& call) {
  const Operand& output = call.output(0);
  double value = call.attrs.number("value");
  const auto fill = [&](const Layout& slab) {
    const Layout same_value{.shape = slab.shape, .strides = Strides(slab.rank(), 0)};
    const Operand from{reinterpret_cast<std::byte*>(&value), &same_value, DType::f64};
    const Operand to{output.base, &slab, output.dtype};
    kernels::run_copy({call.op, {&from, 1}, {&to, 1}, call.attrs, {}, call.pool});
  };
  const Axes &before = call.attrs.list("before"), &after = call.attrs.list("after");
  Layout inside = *output.layout;
  for (int axis = 0; axis < inside.rank(); ++axis) {
    const int64_t size = inside.shape[axis];
    fill(slice_layout(inside, axis, {0, before[axis]}));
    fill(slice_layout(inside, axis, {size - after[axis], size}));
    inside = slice_layout(inside, axis, {before[axis], size - after[axis]});
  }
  const Operand target{output.base, &inside, output.dtype};
  kernels::run_copy({call.op, call.inputs, {&target, 1}, call.attrs, {}, call.pool});
}

Tensors pad_grad(const GradCall& call) {
  const Axes& before = call.attrs.list("before");
  const Shape& shape = call.input(0).shape();
  Tensor dx = call.output_grad(0);
  for (int axis = 0; axis < shape.size(); ++axis) {
    dx = slice(dx, axis, {before[axis], before[axis] + shape[axis]});
  }
  return {dx};
}

Tensors pad_reference(const ComposeCall& call) {
  const Tensor& x = call.input(0);
  Shape shape = x.shape();
  for (int axis = 0; axis < shape.size(); ++axis) {
    shape[axis] += call.attrs.list("before")[axis] + call.attrs.list("after")[axis];
  }
  const Tensor y = empty(shape, x.dtype());
  for (int64_t i = 0; i < y.numel(); ++i) store_float(y, i, call.attrs.number("value"));
  const std::vector<double> values = x.to_vector<double>();
  size_t next = 0;
  for_each_element(inside_layout(y.layout(), call.attrs),
                   [&](int64_t i) { store_float(y, i, values[next++]); });
  return {y};
}

Attrs pad_attrs(const Axes& before, const Axes& after, double value) {
  return {{"before", before}, {"after", after}, {"value", value}};
}

std::vector<Sample> pad_samples() {
  return {{{sample_values({2, 3}, 170)}, pad_attrs({1, 0}, {2, 3}, 1.5)},
          {{sample_values({4}, 171)}, pad_attrs({2}, {0}, -1)},
          {{sample_values({2, 1, 3}, 172)}, pad_attrs({0, 1, 2}, {1, 1, 0}, 0)},
          {{sample_values({}, 173)}, pad_attrs({}, {}, 7)},
          {{sample_values({0, 2}, 174)}, pad_attrs({1, 0}, {1, 1}, 2)},
          {{sample_values({2, 2}, 175)}, pad_attrs({0, 0}, {0, 0}, 3)},
          {{sample_values({60, 150}, 176)}, pad_attrs({30, 20}, {50, 10}, 0.5)}};
}

// ---- flip

void require_axes_once(const Axes& axes, int rank, std::string_view op) {
  Axes seen;
  for (int64_t given : axes) {
    const int axis = normalize_axis(given, rank, op);
    check(!seen.contains(axis), op, ": axis ", axis, " is named twice in ", axes);
    seen.push_back(axis);
  }
}

TensorTypes infer_flip(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  require_axes_once(call.attrs.list("axes"), call.shape(0).size(), "flip");
  return {{call.shape(0), call.dtype(0)}};
}

void flip_cpu(const KernelCall& call) {
  const Operand& x = call.input(0);
  if (x.count() == 0) return;
  const Layout backwards = kernels::flipped_layout(*x.layout, call.attrs);
  const Operand from{x.base, &backwards, x.dtype};
  kernels::run_copy({call.op, {&from, 1}, call.outputs, call.attrs, {}, call.pool});
}

Tensors flip_reference(const ComposeCall& call) {
  const Tensor& x = call.input(0);
  const Tensor y = empty(x.shape(), x.dtype());
  Shape at(x.rank(), 0);
  for_each_element(x.layout(), [&](int64_t i) {
    Shape place = at;
    for (int64_t given : call.attrs.list("axes")) {
      const int axis = normalize_axis(given, x.rank(), "flip");
      place[axis] = x.shape()[axis] - 1 - at[axis];
    }
    int64_t to = 0;
    for (int axis = 0; axis < y.rank(); ++axis) to += place[axis] * y.strides()[axis];
    store_float(y, to, load_float(x, i));
    for (int axis = at.size() - 1; axis >= 0 && ++at[axis] == x.shape()[axis]; --axis) at[axis] = 0;
  });
  return {y};
}

std::vector<Sample> flip_samples() {
  const auto along = [](const Axes& axes) { return Attrs{{"axes", axes}}; };
  return {{{sample_values({5}, 180)}, along({0})},
          {{sample_values({2, 3}, 181)}, along({1})},
          {{sample_values({2, 3, 4}, 182)}, along({0, -1})},
          {{sample_values({2, 3}, 183)}, along({1, 0})},
          {{sample_values({2, 3}, 184)}, along({})},
          {{sample_values({}, 185)}, along({})},
          {{sample_values({0, 3}, 186)}, along({0})},
          {{sample_values({70, 400}, 187)}, along({1})}};
}

// ---- roll

TensorTypes infer_roll(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  const Axes &shifts = call.attrs.list("shifts"), &axes = call.attrs.list("axes");
  check(shifts.size() == axes.size(), "roll: ", shifts.size(), " shifts for ", axes.size(),
        " axes (", shifts, " and ", axes, "); give one shift for every axis");
  require_axes_once(axes, call.shape(0).size(), "roll");
  return {{call.shape(0), call.dtype(0)}};
}

// How many elements move from the end of an axis to its front.
int64_t moved_to_front(int64_t shift, int64_t size) {
  return size == 0 ? 0 : (shift % size + size) % size;
}

Tensors roll_compose(const ComposeCall& call) {
  const Axes &shifts = call.attrs.list("shifts"), &axes = call.attrs.list("axes");
  Tensor y = axes.empty() ? clone(call.input(0)) : call.input(0);
  for (int i = 0; i < axes.size(); ++i) {
    const int64_t size = y.dim(axes[i]), cut = size - moved_to_front(shifts[i], size);
    y = concat({slice(y, axes[i], {cut, size}), slice(y, axes[i], {0, cut})}, axes[i]);
  }
  return {y};
}

Tensors roll_grad(const GradCall& call) {  // the way back
  const Axes& axes = call.attrs.list("axes");
  const Tensor& dy = call.output_grad(0);
  Axes back;
  for (int i = 0; i < axes.size(); ++i) {
    back.push_back(-moved_to_front(call.attrs.list("shifts")[i], dy.dim(axes[i])));
  }
  return {roll(dy, back, axes)};
}

std::vector<Sample> roll_samples() {
  const auto by = [](const Axes& shifts, const Axes& axes) {
    return Attrs{{"shifts", shifts}, {"axes", axes}};
  };
  return {{{sample_values({5}, 190)}, by({2}, {0})},
          {{sample_values({2, 3}, 191)}, by({-1}, {1})},
          {{sample_values({2, 3, 4}, 192)}, by({7, -5}, {-1, 0})},
          {{sample_values({3, 2}, 193)}, by({0}, {0})},
          {{sample_values({4}, 194)}, by({INT64_MIN}, {0})},
          {{sample_values({}, 195)}, by({}, {})},
          {{sample_values({0, 3}, 196)}, by({1}, {0})},
          {{sample_values({70, 400}, 197)}, by({150}, {1})}};
}

}  // namespace

const OpDef pad_op{.name = "pad",
                   .formula = "x with a border of one value",
                   .kind = OpKind::other,
                   .dtypes = kAnyDType,
                   .flops_per_element = 0,
                   .infer = infer_pad,
                   .grad = pad_grad,
                   .reference = pad_reference,
                   .cpu = pad_cpu,
                   .samples = pad_samples};

const OpDef flip_op{.name = "flip",
                    .formula = "x with the order along some axes reversed",
                    .kind = OpKind::other,
                    .dtypes = kAnyDType,
                    .flops_per_element = 0,
                    .infer = infer_flip,
                    .grad = [](const GradCall& call) -> Tensors {
                      return {flip(call.output_grad(0), call.attrs.list("axes"))};
                    },
                    .reference = flip_reference,
                    .cpu = flip_cpu,
                    .samples = flip_samples};

const OpDef roll_op{.name = "roll",
                    .formula = "y[(i + shift) mod size] = x[i]",
                    .kind = OpKind::other,
                    .dtypes = kAnyDType,
                    .flops_per_element = 0,
                    .infer = infer_roll,
                    .grad = roll_grad,
                    .compose = roll_compose,
                    .samples = roll_samples};

Tensor pad(const Tensor& x, const Axes& before, const Axes& after, double value) {
  return call_one(pad_op, {x}, pad_attrs(before, after, value));
}
Tensor flip(const Tensor& x, const Axes& axes) { return call_one(flip_op, {x}, {{"axes", axes}}); }
Tensor roll(const Tensor& x, const Axes& shifts, const Axes& axes) {
  return call_one(roll_op, {x}, {{"shifts", shifts}, {"axes", axes}});
}

}  // namespace brrr
