#include "brrr/ops/view/slice_backward.h"

#include <algorithm>

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/kernels/cpu/index/fold_cpu.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"

namespace brrr {
namespace {

Slice placed_range(const Attrs& attrs) {
  const Axes& range = attrs.list("range");
  return {range[0], range[1], range[2]};
}

TensorTypes infer_place_slice(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  const Shape& shape = call.attrs.list("shape");
  const Shape hole =
      slice_layout(contiguous_layout(shape), call.attrs.integer("axis"), placed_range(call.attrs))
          .shape;
  check(hole == call.shape(0), "place_slice: ", call.shape(0), " does not fill the slice of shape ",
        hole);
  return {{shape, call.dtype(0)}};
}

void fill_zero(const Operand& output) {
  std::fill_n(output.base + storage_bytes(output.dtype, output.layout->offset),
              storage_bytes(output.dtype, output.count()), std::byte{0});
}

void place_slice_cpu(const KernelCall& call) {
  const Operand& output = call.output(0);
  fill_zero(output);
  const Layout hole =
      slice_layout(*output.layout, call.attrs.integer("axis"), placed_range(call.attrs));
  const Operand target{output.base, &hole, output.dtype};
  kernels::run_copy({call.op, call.inputs, {&target, 1}, call.attrs, call.workspace, call.pool});
}

Tensors place_slice_reference(const ComposeCall& call) {
  Tensor y = empty(call.attrs.list("shape"), call.input(0).dtype());
  for_each_element(y.layout(), [&](int64_t i) { store_float(y, i, 0); });
  const Layout hole =
      slice_layout(y.layout(), call.attrs.integer("axis"), placed_range(call.attrs));
  const std::vector<double> values = call.input(0).to_vector<double>();
  size_t next = 0;
  for_each_element(hole, [&](int64_t i) { store_float(y, i, values[next++]); });
  return {y};
}

// Adds overlapping windows back to the places they were seen at; the gradient of unfold.
TensorTypes infer_fold(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  const Shape &windows = call.shape(0), &shape = call.attrs.list("shape");
  check(!windows.empty(), "fold: a scalar is no windows; give them along the last axis");
  const Shape expected = unfold_layout(contiguous_layout(shape), call.attrs.integer("axis"),
                                       windows.back(), call.attrs.integer("step"))
                             .shape;
  check(windows == expected, "fold: shape ", shape, " has windows of shape ", expected, ", not ",
        windows);
  return {{shape, call.dtype(0)}};
}

// One addition for each element of each window.
Cost fold_cost(const CostCall& call) {
  const int64_t count = numel(call.call.shape(0));
  return {.flops = count,
          .bytes_read = storage_bytes(call.call.dtype(0), count),
          .bytes_written = storage_bytes(call.outputs[0].dtype, numel(call.outputs[0].shape))};
}

Tensors fold_compose(const ComposeCall& call) {
  const Shape& shape = call.attrs.list("shape");
  const int64_t axis = call.attrs.integer("axis"), step = call.attrs.integer("step");
  const Tensor& windows = call.input(0);
  const int64_t count = windows.dim(axis), size = windows.dim(-1);
  Tensor total = zeros(shape, {windows.dtype(), windows.device()});
  for (int64_t k = 0; k < size; ++k) {  // element k of every window goes to k, k + step, ...
    const Tensor kth = select(windows, -1, k);
    total = total + place_slice(kth, shape, axis, {k, k + (count - 1) * step + 1, step});
  }
  return {total};
}

}  // namespace

const OpDef place_slice_op{
    .name = "place_slice",
    .formula = "zeros with x in a slice of them",
    .kind = OpKind::other,
    .role = OpRole::place_slice,
    .dtypes = kAnyDType,
    .flops_per_element = 0,
    .infer = infer_place_slice,
    .grad = [](const GradCall& call) -> Tensors {
      return {slice(call.output_grad(0), call.attrs.integer("axis"), placed_range(call.attrs))};
    },
    .reference = place_slice_reference,
    .cpu = place_slice_cpu,
    .samples = []() -> std::vector<Sample> {
      return {{{sample_values({2, 3}, 28)},
               {{"axis", int64_t{1}}, {"range", Axes{1, 6, 2}}, {"shape", Axes{2, 7}}}},
              {{sample_values({0, 3}, 29)},
               {{"axis", int64_t{0}}, {"range", Axes{0, 0, 1}}, {"shape", Axes{4, 3}}}}};
    }};

const OpDef fold_op{.name = "fold",
                    .formula = "overlapping windows added back",
                    .kind = OpKind::other,
                    .infer = infer_fold,
                    .cost = fold_cost,
                    .grad = [](const GradCall& call) -> Tensors {
                      return {unfold(call.output_grad(0), call.attrs.integer("axis"),
                                     call.input(0).shape().back(), call.attrs.integer("step"))};
                    },
                    .compose = fold_compose,
                    .cpu = kernels::fold_cpu,
                    .workspace = kernels::fold_workspace,
                    .samples = []() -> std::vector<Sample> {
                      const auto into = [](int64_t axis, int64_t step, const Shape& shape) {
                        return Attrs{{"axis", axis}, {"step", step}, {"shape", shape}};
                      };
                      return {{{sample_values({2, 3, 3}, 30)}, into(1, 2, {2, 8})},
                              {{sample_values({4, 2, 3}, 31)}, into(0, 1, {6, 2})},
                              {{sample_values({2, 3, 2, 2}, 32)}, into(1, 3, {2, 8, 2})},  // gaps
                              {{sample_values({1, 4}, 33)}, into(0, INT64_MAX, {5})},
                              {{sample_values({4, 0}, 34)}, into(0, 1, {3})},
                              {{sample_values({0, 2, 3}, 35)}, into(1, 1, {0, 4})},
                              {{sample_values({20, 30, 12, 3}, 36)}, into(1, 1, {20, 32, 12})}};
                    }};

Tensor place_slice(const Tensor& dy, const Shape& shape, int64_t axis, Slice range) {
  return call_one(
      place_slice_op, {dy},
      {{"axis", axis}, {"range", Axes{range.start, range.stop, range.step}}, {"shape", shape}});
}

}  // namespace brrr
