// What the definitions of reductions share: their attributes "axes" (sorted, not negative) and
// "keep_dims", the shapes that follow from them, type rules, price and samples.
#pragma once

#include <vector>

#include "brrr/graph/op_def.h"
#include "brrr/ops/reduce/reduce.h"

namespace brrr {

// No axes mean all of them. Throws Error naming `op` on axes that are out of range or named twice.
Attrs reduce_attrs(const Tensor& x, const Axes& axes, KeepDims keep, std::string_view op);
Shape reduced_shape(const Shape& shape, const Attrs& attrs);
int64_t reduced_length(const Shape& shape, const Attrs& attrs);  // elements that go into a result
KeepDims keep_of(const Attrs& attrs);

// Throws Error on axes out of range.
void require_axes(const InferCall& call);
TensorTypes infer_sum(const InferCall& call);           // integers and bools become i64
TensorTypes infer_float_reduce(const InferCall& call);  // floats only
// One operation for each element that goes in.
Cost reduce_cost(const CostCall& call);

// A result with its reduced axes back in place, as size 1.
Tensor with_kept_axes(const Tensor& reduced, const Shape& input_shape, const Attrs& attrs);
// Compositions of several steps keep their intermediate values in f32 at least.
Tensor widen(const Tensor& x);

// Small, long, over rows and down columns; `with_empty`: also rows without elements.
std::vector<Sample> reduce_samples_with(const Attrs& extra, bool with_empty);

// Index by index: visits the elements of each output and folds them with `step` in f64.
template <typename Step>
Tensor reference_fold(const ComposeCall& call, DType dtype, double start, Step step) {
  const Tensor& x = call.input(0);
  const Shape shape = reduced_shape(x.shape(), call.attrs);
  std::vector<double> totals(static_cast<size_t>(numel(shape)), start);
  const Axes& axes = call.attrs.list("axes");
  Layout into{.shape = x.shape(), .strides = Strides(x.rank(), 0)};
  for (int64_t axis = x.rank() - 1, stride = 1; axis >= 0; --axis) {
    const int a = static_cast<int>(axis);
    if (axes.contains(axis)) continue;
    into.strides[a] = stride;
    stride *= x.shape()[a];
  }
  const std::vector<double> values = x.to_vector<double>();
  size_t next = 0;
  for_each_element(
      into, [&](int64_t place) { step(totals[static_cast<size_t>(place)], values[next++]); });
  Tensor y = empty(shape, dtype);
  for (int64_t i = 0; i < y.numel(); ++i) store_float(y, i, totals[static_cast<size_t>(i)]);
  return y;
}

}  // namespace brrr
