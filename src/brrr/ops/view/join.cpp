#include "brrr/ops/view/join.h"

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

void require_parts(int64_t count, std::string_view op) {
  check(count > 0, op, ": no parts given; a result needs at least one");
}

TensorTypes infer_concat(const InferCall& call) {
  require_parts(call.size(), "concat");
  Shape shape = call.shape(0);
  const int axis = normalize_axis(call.attrs.integer("axis"), shape.size(), "concat");
  for (int part = 1; part < call.size(); ++part) {
    const Shape& other = call.shape(part);
    check(other.size() == shape.size(), "concat: part ", part, " has shape ", other,
          " and part 0 has shape ", call.shape(0), "; give every part the same number of axes");
    for (int a = 0; a < shape.size(); ++a) {
      check(a == axis || other[a] == shape[a], "concat: part ", part, " has size ", other[a],
            " on axis ", a, " and part 0 has ", shape[a], " (shapes ", other, " and ",
            call.shape(0), "); only axis ", axis, " may differ");
    }
    shape[axis] += other[axis];
  }
  const DType dtype = promote_types(call.inputs, call.op.name);
  require_dtype(call, dtype);
  return {{shape, dtype}};
}

// Each part is copied into its own slice of the result, and run_copy uses all threads for it.
void concat_cpu(const KernelCall& call) {
  const Operand& output = call.output(0);
  const int axis = normalize_axis(call.attrs.integer("axis"), output.shape().size(), "concat");
  int64_t start = 0;
  for (const Operand& part : call.inputs) {
    const int64_t stop = start + part.shape()[axis];
    const Layout place = slice_layout(*output.layout, axis, {start, stop});
    const Operand target{output.base, &place, output.dtype};
    kernels::run_copy({call.op, {&part, 1}, {&target, 1}, call.attrs, call.workspace, call.pool});
    start = stop;
  }
}

Tensors concat_grad(const GradCall& call) {
  const Tensor& dy = call.output_grad(0);
  const int axis = normalize_axis(call.attrs.integer("axis"), dy.rank(), "concat");
  Tensors grads(static_cast<int>(call.inputs.size()));
  int64_t start = 0;
  for (int part = 0; part < grads.size(); ++part) {
    const int64_t stop = start + call.input(part).shape()[axis];
    if (call.wants(part)) {
      grads[part] = cast(slice(dy, axis, {start, stop}), call.input(part).dtype());
    }
    start = stop;
  }
  return grads;
}

Tensors concat_reference(const ComposeCall& call) {
  SmallVector<TypeRef, 4> types;
  for (const Tensor& part : call.inputs) types.push_back({&part.shape(), part.dtype(), false});
  const TensorType type = infer_concat({concat_op, std::span<const TypeRef>(types), call.attrs})[0];
  const Tensor y = empty(type.shape, type.dtype);
  const int axis = normalize_axis(call.attrs.integer("axis"), y.rank(), "concat");
  int64_t start = 0;
  for (const Tensor& part : call.inputs) {
    const int64_t stop = start + part.shape()[axis];
    const std::vector<double> values = part.to_vector<double>();
    size_t next = 0;
    for_each_element(slice_layout(y.layout(), axis, {start, stop}),
                     [&](int64_t i) { store_float(y, i, values[next++]); });
    start = stop;
  }
  return {y};
}

std::vector<Sample> concat_samples() {
  const auto along = [](int64_t axis) { return Attrs{{"axis", axis}}; };
  return {
      {{sample_values({2, 3}, 50), sample_values({4, 3}, 51)}, along(0)},
      {{sample_values({2, 1, 3}, 52), sample_values({2, 5, 3}, 53), sample_values({2, 2, 3}, 54)},
       along(-2)},
      {{sample_values({3, 2}, 55), sample_values({3, 0}, 56), sample_values({3, 1}, 57)}, along(1)},
      {{sample_values({0, 2}, 58), sample_values({0, 2}, 59)}, along(0)},
      {{sample_values({1}, 60)}, along(0)},
      // dtypes differ
      {{sample_values({2, 3}, 61), cast(sample_indices({2, 3}, 62, 5), DType::u8)}, along(1)},
      {{sample_values({30, 900}, 63), sample_values({30, 1101}, 64)}, along(1)},  // several pieces
  };
}

TensorTypes infer_stack(const InferCall& call) {
  require_parts(call.size(), "stack");
  Shape shape = call.shape(0);
  for (int part = 1; part < call.size(); ++part) {
    check(call.shape(part) == shape, "stack: part ", part, " has shape ", call.shape(part),
          " and part 0 has shape ", shape, "; give every part the same shape, or use concat()");
  }
  shape.insert(normalize_axis(call.attrs.integer("axis"), shape.size() + 1, "stack"), call.size());
  const DType dtype = promote_types(call.inputs, call.op.name);
  require_dtype(call, dtype);
  return {{shape, dtype}};
}

Tensors stack_compose(const ComposeCall& call) {
  const int rank = call.input(0).rank() + 1;
  const int64_t axis = normalize_axis(call.attrs.integer("axis"), rank, "stack");
  std::vector<Tensor> parts;
  for (const Tensor& part : call.inputs) parts.push_back(unsqueeze(part, axis));
  return {concat(parts, axis)};
}

std::vector<Sample> stack_samples() {
  const auto along = [](int64_t axis) { return Attrs{{"axis", axis}}; };
  return {{{sample_values({2, 3}, 150), sample_values({2, 3}, 151)}, along(0)},
          {{sample_values({2, 3}, 152), sample_values({2, 3}, 153)}, along(-1)},
          {{sample_values({}, 154), sample_values({}, 155), sample_values({}, 156)}, along(0)},
          {{sample_values({0, 2}, 157)}, along(1)},
          // dtypes differ
          {{sample_values({3}, 158), cast(sample_indices({3}, 159, 5), DType::u8)}, along(1)},
          {{sample_values({90, 100}, 160), sample_values({90, 100}, 161)}, along(2)}};
}

TensorTypes infer_unstack(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  Shape shape = call.shape(0);
  check(!shape.empty(), "unstack: a tensor without axes cannot be taken apart");
  const int axis = normalize_axis(call.attrs.integer("axis"), shape.size(), "unstack");
  const int64_t count = shape[axis];
  check(count > 0, "unstack: axis ", axis, " of shape ", shape, " has no parts");
  shape.erase(axis);
  TensorTypes types;
  for (int64_t i = 0; i < count; ++i) types.push_back({shape, call.dtype(0)});
  return types;
}

Tensors unstack_compose(const ComposeCall& call) {
  const Tensor& x = call.input(0);
  const int64_t axis = call.attrs.integer("axis");
  Tensors parts;
  for (int64_t i = 0; i < x.dim(axis); ++i) parts.push_back(select(x, axis, i));
  return parts;
}

Tensors unstack_grad(const GradCall& call) {
  Device device;
  for (const Tensor& dy : call.output_grads) {
    if (dy.defined()) device = dy.device();
  }
  std::vector<Tensor> grads;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const Tensor &y = call.outputs[i], &dy = call.output_grads[i];
    grads.push_back(dy.defined() ? dy : zeros(y.shape(), {.dtype = y.dtype(), .device = device}));
  }
  return {stack(grads, call.attrs.integer("axis"))};
}

std::vector<Sample> unstack_samples() {
  const auto along = [](int64_t axis) { return Attrs{{"axis", axis}}; };
  return {{{sample_values({3, 4}, 170)}, along(0)}, {{sample_values({3, 2, 4}, 171)}, along(-2)},
          {{sample_values({2}, 172)}, along(0)},    {{sample_values({0, 2}, 173)}, along(1)},
          {{sample_values({1, 1}, 174)}, along(0)}, {{sample_values({4, 90, 50}, 175)}, along(0)}};
}

}  // namespace

const OpDef concat_op{.name = "concat",
                      .formula = "the parts one after another along an axis",
                      .kind = OpKind::other,
                      .role = OpRole::concat,
                      .dtypes = kAnyDType,
                      .flops_per_element = 0,
                      .infer = infer_concat,
                      .grad = concat_grad,
                      .reference = concat_reference,
                      .cpu = concat_cpu,
                      .samples = concat_samples};

const OpDef stack_op{.name = "stack",
                     .formula = "the parts side by side along a new axis",
                     .kind = OpKind::other,
                     .dtypes = kAnyDType,
                     .flops_per_element = 0,
                     .infer = infer_stack,
                     .compose = stack_compose,
                     .samples = stack_samples};

const OpDef unstack_op{.name = "unstack",
                       .formula = "the parts of an axis, one by one",
                       .kind = OpKind::other,
                       .dtypes = kAnyDType,
                       .flops_per_element = 0,
                       .infer = infer_unstack,
                       .grad = unstack_grad,
                       .compose = unstack_compose,
                       .samples = unstack_samples};

Tensor concat(const std::vector<Tensor>& parts, int64_t axis) {
  // A call without operands would not know its device.
  require_parts(static_cast<int64_t>(parts.size()), "concat");
  return call_op(concat_op, parts, {{"axis", axis}})[0];
}

Tensor stack(const std::vector<Tensor>& parts, int64_t axis) {
  require_parts(static_cast<int64_t>(parts.size()), "stack");
  return call_op(stack_op, parts, {{"axis", axis}})[0];
}

std::vector<Tensor> unstack(const Tensor& x, int64_t axis) {
  const Tensors parts = call_op(unstack_op, {&x, 1}, {{"axis", axis}});
  return {parts.begin(), parts.end()};
}

}  // namespace brrr
