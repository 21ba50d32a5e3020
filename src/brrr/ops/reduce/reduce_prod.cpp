// The product over axes. Its gradient, the product of the others, must not divide by elements that may
// be 0: it goes down the tree of partial products, where a child's others are its parent's others
// times its sibling. Only products, so the second derivative is right at 0 too.
#include <algorithm>
#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/reduce/reduce_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce_axes.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

// The order of axes that brings the reduced ones to the end, and the way back.
struct AxisOrder {
  Axes to_rows, back;
};
AxisOrder reduced_last(int rank, const Axes& reduced) {
  AxisOrder order{.to_rows = {}, .back = Axes(rank, 0)};
  for (int axis = 0; axis < rank; ++axis) {
    if (!reduced.contains(axis)) order.to_rows.push_back(axis);
  }
  for (int64_t axis : reduced) order.to_rows.push_back(axis);
  for (int i = 0; i < rank; ++i) order.back[static_cast<int>(order.to_rows[i])] = i;
  return order;
}

// [rows, n] to [rows, ceil(n / 2), 2]; a last element without a sibling gets 1.
Tensor in_pairs(const Tensor& x) {
  const int64_t rows = x.dim(0), count = x.dim(1);
  if (count % 2 == 0) return reshape(x, {rows, count / 2, 2});
  return reshape(concat({x, ones({rows, 1}, {x.dtype(), x.device()})}, 1),
                 {rows, count / 2 + 1, 2});
}

Tensor siblings(const Tensor& pairs) {
  return concat({slice(pairs, 2, {.start = 1}), slice(pairs, 2, {.stop = 1})}, 2);
}

// seed [rows, 1] times the product of the others for every element of x [rows, n], n > 0: up the tree
// n products, down 2 n.
Tensor times_others(const Tensor& x, const Tensor& seed) {
  std::vector<Tensor> levels{x};
  while (levels.back().dim(1) > 1) {
    const Tensor pairs = in_pairs(levels.back());
    levels.push_back(select(pairs, 2, 0) * select(pairs, 2, 1));
  }
  Tensor others = seed;
  for (size_t level = levels.size() - 1; level-- > 0;) {
    const int64_t rows = x.dim(0), count = levels[level].dim(1);
    const Tensor both = unsqueeze(others, 2) * siblings(in_pairs(levels[level]));
    others = slice(reshape(both, {rows, 2 * both.dim(1)}), 1, {.stop = count});
  }
  return others;
}

Tensors prod_grad(const GradCall& call) {
  const Tensor& x = call.input(0);
  if (x.numel() == 0)
    return {expand(with_kept_axes(call.output_grad(0), x.shape(), call.attrs), x.shape())};
  const AxisOrder order = reduced_last(x.rank(), call.attrs.list("axes"));
  const Tensor moved = permute(widen(x), order.to_rows);
  const int64_t length = reduced_length(x.shape(), call.attrs), rows = x.numel() / length;
  const Tensor seed = reshape(widen(call.output_grad(0)), {rows, 1});
  const Tensor grad = times_others(reshape(moved, {rows, length}), seed);
  return {cast(permute(reshape(grad, moved.shape()), order.back), x.dtype())};
}

// Sizes of 0.9 to 1.1, so that long products stay in range, with zeros here and there in the short.
std::vector<Sample> prod_samples() {
  std::vector<Sample> samples = reduce_samples_with({}, true);
  for (Sample& sample : samples) {
    double* values = sample.inputs[0].data<double>();
    const int64_t count = sample.inputs[0].numel();
    for (int64_t i = 0; i < count; ++i) {
      const bool zero = count < 1000 && std::fabs(values[i]) < 0.06;
      values[i] = zero ? 0 : std::copysign(0.9 + 0.1 * std::fabs(values[i]), values[i]);
    }
  }
  const Attrs rows{{"axes", Axes{1}}, {"keep_dims", false}};
  // none, one, two and only zeros in a row
  const double with_zeros[] = {2, 3, -1.5, 2, 0, -1.5, 0, 3, 0, 0, 0, 0};
  const Tensor x = empty({4, 3}, DType::f64);
  std::copy(std::begin(with_zeros), std::end(with_zeros), x.data<double>());
  samples.push_back({{x}, rows});
  return samples;
}

}  // namespace

const OpDef prod_op{
    .name = "prod",
    .formula = "product of elements",
    .kind = OpKind::reduce,
    .fold = Fold::product,
    .dtypes = kAnyDType,
    .infer = infer_sum,
    .cost = reduce_cost,
    .grad = prod_grad,
    .grad_reads = {.inputs = 1},
    .reference = [](const ComposeCall& call) -> Tensors {
      return {reference_fold(call, sum_dtype(call.input(0).dtype()), 1,
                             [](double& total, double x) { total *= x; })};
    },
    .cpu = kernels::prod_cpu,
    .workspace = kernels::reduce_workspace,
    .streams = {.inputs = 1},
    .samples = prod_samples,
    .tolerance = 8};  // every factor rounds relatively: 40000 of them walk 200 half units

Tensor prod(const Tensor& x, const ReduceAxes& axes, KeepDims keep) {
  return call_one(prod_op, {x}, reduce_attrs(x, axes, keep, "prod"));
}

}  // namespace brrr
