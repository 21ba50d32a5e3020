#include "brrr/ops/index/index.h"

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/index/index_cpu.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/index/index_rules.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {

void require_index_dtype(const InferCall& call, int operand) {
  const DType dtype = call.dtype(operand);
  check(dtype == DType::i64 || dtype == DType::i32, call.op.name,
        ": indices must be i64 or i32, not ", dtype, "; cast them");
}

void require_index_fits(const InferCall& call, const Shape& x, const Shape& index) {
  const std::string_view op = call.op.name;
  const int axis = normalize_axis(call.attrs.integer("axis"), x.size(), op);
  check(index.size() == x.size(), op, ": x has shape ", x, " and the index ", index,
        "; give the index as many axes as x");
  for (int a = 0; a < x.size(); ++a) {
    check(a == axis || index[a] <= x[a], op, ": the index has size ", index[a], " on axis ", a,
          " where x has ", x[a], " (shapes ", index, " and ", x, "); only axis ", axis,
          " may be larger");
  }
}

TensorTypes infer_scatter(const InferCall& call) {
  const std::string_view op = call.op.name;
  require_dtype(call, call.dtype(0));
  require_index_dtype(call, 1);
  require_index_fits(call, call.shape(0), call.shape(1));
  check(call.shape(2) == call.shape(1), op, ": the index has shape ", call.shape(1),
        " and the source ", call.shape(2), "; every source element needs one index");
  check(call.dtype(2) == call.dtype(0), op, ": x is ", call.dtype(0), " and the source ",
        call.dtype(2), "; cast one of them");
  return {{call.shape(0), call.dtype(0)}};
}

namespace {

TensorTypes infer_gather(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  require_index_dtype(call, 1);
  require_index_fits(call, call.shape(0), call.shape(1));
  return {{call.shape(1), call.dtype(0)}};
}

TensorTypes infer_embedding(const InferCall& call) {
  const Shape& table = call.shape(0);
  require_dtype(call, call.dtype(0));
  check(table.size() == 2, "embedding: the table must be [rows, dim], not ", table);
  require_index_dtype(call, 1);
  Shape shape = call.shape(1);
  shape.push_back(table[1]);
  return {{shape, call.dtype(0)}};
}

TensorTypes infer_embedding_grad(const InferCall& call) {
  const Shape &dy = call.shape(0), &ids = call.shape(1);
  require_dtype(call, call.dtype(0));
  require_index_dtype(call, 1);
  bool fits = dy.size() == ids.size() + 1;
  for (int axis = 0; fits && axis < ids.size(); ++axis) fits = dy[axis] == ids[axis];
  check(fits, "embedding_grad: ids of shape ", ids,
        " need dy of that shape and one more axis, not ", dy);
  const int64_t rows = call.attrs.integer("rows");
  check(rows >= 0, "embedding_grad: a table of ", rows, " rows; use a number >= 0");
  return {{{rows, dy.back()}, call.dtype(0)}};
}

int64_t bytes_of(const CostCall& call, int input) {
  const TypeRef& operand = call.call.inputs[static_cast<size_t>(input)];
  return storage_bytes(operand.dtype, numel(*operand.shape));
}
int64_t output_bytes(const CostCall& call) {
  return storage_bytes(call.outputs[0].dtype, numel(call.outputs[0].shape));
}

// Reads the elements that it picks, one for each of the result, and never the rest of x.
Cost picking_cost(const CostCall& call) {
  const int64_t bytes = output_bytes(call);
  return {.bytes_read = bytes + bytes_of(call, 1), .bytes_written = bytes};
}

// Touches every operand, and adds once for each element of input `added`.
template <int added>
Cost adding_cost(const CostCall& call) {
  Cost cost{.flops = numel(call.call.shape(added)), .bytes_written = output_bytes(call)};
  for (int input = 0; input < call.call.size(); ++input) cost.bytes_read += bytes_of(call, input);
  return cost;
}

Tensors gather_grad(const GradCall& call) {
  const Tensor &x = call.input(0), &dy = call.output_grad(0);
  Tensors grads(2);
  grads[0] = scatter_add(zeros(x.shape(), {x.dtype(), dy.device()}), call.attrs.integer("axis"),
                         call.input(1), dy);
  return grads;
}

Tensors scatter_add_grad(const GradCall& call) {
  const Tensor& dy = call.output_grad(0);
  Tensors grads(3);
  if (call.wants(0)) grads[0] = dy;
  if (call.wants(2)) grads[2] = gather(dy, call.attrs.integer("axis"), call.input(1));
  return grads;
}

Tensor embedding_grad(const Tensor& dy, const Tensor& ids, int64_t rows) {
  return call_one(embedding_grad_op, {dy, ids}, {{"rows", rows}});
}

// ids as an index for rows of `dim` columns: [ids.numel(), dim].
Tensor row_index(const Tensor& ids, int64_t dim) {
  return expand(reshape(ids, {ids.numel(), 1}), {ids.numel(), dim});
}

Tensors embedding_compose(const ComposeCall& call) {
  const Tensor &table = call.input(0), &ids = call.input(1);
  Shape shape = ids.shape();
  shape.push_back(table.dim(1));
  return {reshape(gather(table, 0, row_index(ids, table.dim(1))), shape)};
}

Tensors embedding_grad_compose(const ComposeCall& call) {
  const Tensor &dy = call.input(0), &ids = call.input(1);
  const int64_t dim = dy.dim(-1);
  const Tensor start =
      zeros({call.attrs.integer("rows"), dim}, {.dtype = dy.dtype(), .device = dy.device()});
  return {scatter_add(start, 0, row_index(ids, dim), reshape(dy, {ids.numel(), dim}))};
}

// Calls visit(position in index, position in x of the element that it names) in row-major order.
template <typename Visit>
void for_each_place(const Tensor& x, const Tensor& index, int axis, Visit visit) {
  Shape at(index.rank(), 0);
  for_each_element(index.layout(), [&](int64_t i) {
    int64_t place = x.offset();
    for (int a = 0; a < x.rank(); ++a) {
      place += (a == axis ? load_int(index, i) : at[a]) * x.strides()[a];
    }
    visit(place);
    for (int a = at.size() - 1; a >= 0 && ++at[a] == index.shape()[a]; --a) at[a] = 0;
  });
}

Tensors gather_reference(const ComposeCall& call) {
  const Tensor &x = call.input(0), &index = call.input(1);
  const Tensor y = empty(index.shape(), x.dtype());
  int64_t next = 0;
  for_each_place(x, index, normalize_axis(call.attrs.integer("axis"), x.rank(), "gather"),
                 [&](int64_t place) { store_float(y, next++, load_float(x, place)); });
  return {y};
}

Tensors scatter_add_reference(const ComposeCall& call) {
  const Tensor &x = call.input(0), &index = call.input(1);
  const std::vector<double> values = call.input(2).to_vector<double>();
  const Tensor total = empty(x.shape(), DType::f64), y = empty(x.shape(), x.dtype());
  int64_t next = 0;
  for_each_element(x.layout(), [&](int64_t i) { store_float(total, next++, load_float(x, i)); });
  size_t source = 0;
  for_each_place(total, index, normalize_axis(call.attrs.integer("axis"), x.rank(), "scatter_add"),
                 [&](int64_t place) { total.data<double>()[place] += values[source++]; });
  for (int64_t i = 0; i < y.numel(); ++i) store_float(y, i, load_float(total, i));
  return {y};
}

Tensor narrow_index(const Tensor& index) {  // the same numbers as i32
  const Tensor narrow = empty(index.shape(), DType::i32);
  for (int64_t i = 0; i < index.numel(); ++i) store_int(narrow, i, load_int(index, i));
  return narrow;
}

std::vector<Sample> gather_samples() {
  const auto along = [](int64_t axis) { return Attrs{{"axis", axis}}; };
  return {{{sample_values({3, 4}, 80), sample_indices({3, 2}, 81, 4)}, along(1)},
          {{sample_values({3, 4}, 82), narrow_index(sample_indices({5, 3}, 83, 3))}, along(0)},
          {{sample_values({2, 3, 4}, 84), sample_indices({2, 6, 3}, 85, 3)}, along(-2)},
          {{sample_values({7}, 86), sample_indices({9}, 87, 7)}, along(0)},
          {{sample_values({1, 1}, 88), sample_indices({1, 1}, 89, 1)}, along(1)},
          {{sample_values({0, 3}, 90), sample_indices({0, 3}, 91, 1)}, along(0)},
          {{sample_values({40, 50}, 92), sample_indices({40, 1000}, 93, 50)}, along(1)}};
}

std::vector<Sample> embedding_samples() {
  return {{{sample_values({5, 3}, 110), sample_indices({4}, 111, 5)}, {}},
          {{sample_values({6, 4}, 112), narrow_index(sample_indices({2, 3}, 113, 6))}, {}},
          {{sample_values({2, 1}, 114), sample_indices({}, 115, 2)}, {}},
          {{sample_values({3, 2}, 116), sample_indices({0, 2}, 117, 3)}, {}},
          {{sample_values({3, 0}, 118), sample_indices({2}, 119, 3)}, {}},
          {{sample_values({30, 70}, 120), sample_indices({9, 100}, 121, 30)}, {}}};
}

std::vector<Sample> embedding_grad_samples() {
  std::vector<Sample> samples;
  for (const Sample& forward : embedding_samples()) {
    const Tensor &table = forward.inputs[0], &ids = forward.inputs[1];
    Shape shape = ids.shape();
    shape.push_back(table.dim(1));
    samples.push_back({{sample_values(shape, 122), ids}, {{"rows", table.dim(0)}}});
  }
  return samples;
}

constexpr PrecisionRule kRowsOfATable{.take = Take::table,
                                      .reason = "rounding a row and taking it commute"};

}  // namespace

std::vector<Sample> scatter_samples() {
  std::vector<Sample> samples = gather_samples();
  uint32_t seed = 94;
  for (Sample& sample : samples) {
    sample.inputs.push_back(sample_values(sample.inputs[1].shape(), seed++));
  }
  return samples;
}

const OpDef gather_op{.name = "gather",
                      .formula = "x at the places that the index names along an axis",
                      .kind = OpKind::gather,
                      .dtypes = kAnyDType,
                      .flops_per_element = 0,
                      .infer = infer_gather,
                      .cost = picking_cost,
                      .grad = gather_grad,
                      .grad_reads = {.inputs = 0b10},
                      .reference = gather_reference,
                      .cpu = kernels::gather_cpu,
                      .samples = gather_samples};

const OpDef scatter_add_op{.name = "scatter_add",
                           .formula = "x, and source added at the places that the index names",
                           .kind = OpKind::other,
                           .role = OpRole::scatter_add,
                           .dtypes = kNumbers,
                           .infer = infer_scatter,
                           .cost = adding_cost<2>,
                           .grad = scatter_add_grad,
                           .grad_reads = {.inputs = 0b10},
                           .reference = scatter_add_reference,
                           .cpu = kernels::scatter_add_cpu,
                           .workspace = kernels::scatter_add_workspace,
                           .samples = scatter_samples};

const OpDef embedding_op{
    .name = "embedding",
    .formula = "table[ids]",
    .kind = OpKind::gather,
    .precision = &kRowsOfATable,
    .dtypes = kAnyDType,
    .flops_per_element = 0,
    .infer = infer_embedding,
    .cost = picking_cost,
    .grad = [](const GradCall& call) -> Tensors {
      return {embedding_grad(call.output_grad(0), call.input(1), call.input(0).shape()[0]),
              Tensor()};
    },
    .grad_reads = {.inputs = 0b10},
    .compose = embedding_compose,
    .cpu = kernels::embedding_cpu,
    .samples = embedding_samples};

const OpDef embedding_grad_op{.name = "embedding_grad",
                              .formula = "row r = sum of dy where ids == r",
                              .kind = OpKind::other,
                              .role = OpRole::embedding_backward,
                              .dtypes = kNumbers,
                              .infer = infer_embedding_grad,
                              .cost = adding_cost<0>,
                              .grad = [](const GradCall& call) -> Tensors {
                                return {embedding(call.output_grad(0), call.input(1)), Tensor()};
                              },
                              .grad_reads = {.inputs = 0b10},
                              .compose = embedding_grad_compose,
                              .cpu = kernels::embedding_grad_cpu,
                              .workspace = kernels::embedding_grad_workspace,
                              .samples = embedding_grad_samples};

Tensor gather(const Tensor& x, int64_t axis, const Tensor& index) {
  return call_one(gather_op, {x, index}, {{"axis", axis}});
}
Tensor scatter_add(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source) {
  return call_one(scatter_add_op, {x, index, source}, {{"axis", axis}});
}
Tensor embedding(const Tensor& table, const Tensor& ids) {
  return call_one(embedding_op, {table, ids});
}

}  // namespace brrr
