#include "brrr/ops/index/index_select.h"

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/index/index_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

void require_id_dtype(const InferCall& call, int operand) {
  const DType dtype = call.dtype(operand);
  check(dtype == DType::i64 || dtype == DType::i32, call.op.name, ": ids must be i64 or i32, not ",
        dtype, "; cast them");
}

// The shape of x with the axis as long as the ids.
Shape selected_shape(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  require_id_dtype(call, 1);
  Shape shape = call.shape(0);
  const Shape& ids = call.shape(1);
  check(ids.size() == 1, call.op.name, ": ids of shape ", ids,
        " must have one axis; reshape them to [n]");
  shape[normalize_axis(call.attrs.integer("axis"), shape.size(), call.op.name)] = ids[0];
  return shape;
}

TensorTypes infer_index_select(const InferCall& call) {
  return {{selected_shape(call), call.dtype(0)}};
}

TensorTypes infer_index_add(const InferCall& call) {
  const Shape shape = selected_shape(call);
  check(call.shape(2) == shape, "index_add: ", call.shape(1)[0], " ids into shape ", call.shape(0),
        " need a source of shape ", shape, ", not ", call.shape(2));
  check(call.dtype(2) == call.dtype(0), "index_add: x is ", call.dtype(0), " and the source ",
        call.dtype(2), "; cast one of them");
  return {{call.shape(0), call.dtype(0)}};
}

TensorTypes infer_one_hot(const InferCall& call) {
  require_id_dtype(call, 0);
  const int64_t classes = call.attrs.integer("classes");
  check(classes >= 0, "one_hot: ", classes, " classes; use a number >= 0");
  const DType dtype = call.attrs.get<DType>("dtype");
  check(!is_packed(dtype), "one_hot: ", dtype, " is packed for storage; ask for another dtype");
  Shape shape = call.shape(0);
  shape.push_back(classes);
  return {{shape, dtype}};
}

// ids [n] as an index of `shape`, which has n elements on the axis: the same on all other axes.
Tensor spread_ids(const Tensor& ids, const Shape& shape, int axis) {
  Shape column(shape.size(), 1);
  column[axis] = ids.numel();
  return expand(reshape(ids, column), shape);
}

Tensors index_select_compose(const ComposeCall& call) {
  const Tensor &x = call.input(0), &ids = call.input(1);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.rank(), "index_select");
  Shape shape = x.shape();
  shape[axis] = ids.numel();
  return {gather(x, axis, spread_ids(ids, shape, axis))};
}

Tensors index_select_grad(const GradCall& call) {
  const Tensor &x = call.input(0), &dy = call.output_grad(0);
  Tensors grads(2);
  grads[0] = index_add(zeros(x.shape(), {x.dtype(), dy.device()}), call.attrs.integer("axis"),
                       call.input(1), dy);
  return grads;
}

Tensors index_add_compose(const ComposeCall& call) {
  const Tensor &x = call.input(0), &source = call.input(2);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.rank(), "index_add");
  return {scatter_add(x, axis, spread_ids(call.input(1), source.shape(), axis), source)};
}

Tensors index_add_grad(const GradCall& call) {
  const Tensor& dy = call.output_grad(0);
  Tensors grads(3);
  if (call.wants(0)) grads[0] = dy;
  if (call.wants(2)) grads[2] = index_select(dy, call.attrs.integer("axis"), call.input(1));
  return grads;
}

Tensors one_hot_compose(const ComposeCall& call) {
  const Tensor& ids = call.input(0);
  const Tensor classes = arange(0, static_cast<double>(call.attrs.integer("classes")), 1,
                                {.dtype = DType::i64, .device = ids.device()});
  return {cast(equal(unsqueeze(ids, -1), classes), call.attrs.get<DType>("dtype"))};
}

// Reads the slices that it picks and the ids.
Cost index_select_cost(const CostCall& call) {
  const int64_t bytes = storage_bytes(call.outputs[0].dtype, numel(call.outputs[0].shape));
  const int64_t id_bytes = storage_bytes(call.call.dtype(1), numel(call.call.shape(1)));
  return {.bytes_read = bytes + id_bytes, .bytes_written = bytes};
}

std::vector<Sample> index_select_samples() {
  const auto along = [](int64_t axis) { return Attrs{{"axis", axis}}; };
  return {{{sample_values({4, 3}, 200), sample_indices({5}, 201, 4)}, along(0)},
          {{sample_values({2, 3, 4}, 202), sample_indices({2}, 203, 3)}, along(1)},
          {{sample_values({2, 3, 4}, 204), sample_indices({7}, 205, 4)}, along(-1)},
          {{sample_values({6}, 206), cast(sample_indices({4}, 207, 6), DType::i32)}, along(0)},
          {{sample_values({1}, 208), sample_indices({1}, 209, 1)}, along(0)},
          {{sample_values({0, 3}, 210), sample_indices({2}, 211, 3)}, along(1)},
          {{sample_values({3, 2}, 212), sample_indices({0}, 213, 3)}, along(0)},
          {{sample_values({30, 8, 25}, 214), sample_indices({40}, 215, 8)}, along(1)}};
}

std::vector<Sample> index_add_samples() {
  std::vector<Sample> samples = index_select_samples();
  uint32_t seed = 220;
  for (Sample& sample : samples) {
    Shape shape = sample.inputs[0].shape();
    shape[normalize_axis(sample.attrs.integer("axis"), shape.size(), "index_add")] =
        sample.inputs[1].numel();
    sample.inputs.push_back(sample_values(shape, seed++));
  }
  return samples;
}

std::vector<Sample> one_hot_samples() {
  const auto into = [](int64_t classes, DType dtype) {
    return Attrs{{"classes", classes}, {"dtype", dtype}};
  };
  return {{{sample_indices({5}, 230, 4)}, into(4, DType::f32)},
          {{sample_indices({2, 3}, 231, 6)}, into(6, DType::i64)},
          {{cast(sample_indices({3}, 232, 2), DType::i32)}, into(3, DType::boolean)},
          {{sample_indices({}, 233, 3)}, into(3, DType::bf16)},
          {{sample_indices({0, 2}, 234, 3)}, into(3, DType::f64)},
          {{sample_indices({1}, 235, 1)}, into(1, DType::u8)},
          {{sample_indices({900}, 236, 40)}, into(40, DType::f32)}};
}

}  // namespace

const OpDef index_select_op{.name = "index_select",
                            .formula = "x[ids] on one axis",
                            .kind = OpKind::gather,
                            .dtypes = kAnyDType,
                            .flops_per_element = 0,
                            .infer = infer_index_select,
                            .cost = index_select_cost,
                            .grad = index_select_grad,
                            .grad_reads = {.inputs = 0b10},
                            .compose = index_select_compose,
                            .cpu = kernels::index_select_cpu,
                            .samples = index_select_samples};

const OpDef index_add_op{.name = "index_add",
                         .formula = "x, and source added to the slices that ids name",
                         .kind = OpKind::other,
                         .dtypes = kNumbers,
                         .infer = infer_index_add,
                         .grad = index_add_grad,
                         .grad_reads = {.inputs = 0b10},
                         .compose = index_add_compose,
                         .samples = index_add_samples};

const OpDef one_hot_op{.name = "one_hot",
                       .formula = "y[i, c] = (c == ids[i])",
                       .kind = OpKind::other,
                       .dtypes = dtype_set(DType::i64) | dtype_set(DType::i32),
                       .flops_per_element = 0,
                       .infer = infer_one_hot,
                       .compose = one_hot_compose,
                       .cpu = kernels::one_hot_cpu,
                       .samples = one_hot_samples};

Tensor index_select(const Tensor& x, int64_t axis, const Tensor& ids) {
  return call_one(index_select_op, {x, ids}, {{"axis", axis}});
}
Tensor index_add(const Tensor& x, int64_t axis, const Tensor& ids, const Tensor& source) {
  return call_one(index_add_op, {x, ids, source}, {{"axis", axis}});
}
Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype) {
  return call_one(one_hot_op, {ids}, {{"classes", classes}, {"dtype", dtype}});
}

}  // namespace brrr
