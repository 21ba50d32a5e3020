#include "brrr/ops/reduce/reduce_axes.h"

#include <algorithm>

#include "brrr/ops/create/copy.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

// All axes where none are named; counted from the front, sorted, each once.
Axes normalize_axes(const Axes& axes, int rank, std::string_view op) {
  Axes result;
  for (int i = 0; i < (axes.empty() ? rank : axes.size()); ++i) {
    const int axis = axes.empty() ? i : normalize_axis(axes[i], rank, op);
    check(!result.contains(axis), op, ": axis ", axis, " is named twice in ", axes);
    result.push_back(axis);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

Attrs reduce_attrs(const Tensor& x, const Axes& axes, KeepDims keep, std::string_view op) {
  return {{"axes", normalize_axes(axes, x.rank(), op)}, {"keep_dims", keep == KeepDims::yes}};
}

Shape reduced_shape(const Shape& shape, const Attrs& attrs) {
  Shape result;
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (!attrs.list("axes").contains(axis)) {
      result.push_back(shape[axis]);
    } else if (attrs.flag("keep_dims")) {
      result.push_back(1);
    }
  }
  return result;
}

int64_t reduced_length(const Shape& shape, const Attrs& attrs) {
  int64_t length = 1;
  for (int64_t axis : attrs.list("axes")) length *= shape[static_cast<int>(axis)];
  return length;
}

KeepDims keep_of(const Attrs& attrs) {
  return attrs.flag("keep_dims") ? KeepDims::yes : KeepDims::no;
}

void require_axes(const InferCall& call) {
  for (int64_t axis : call.attrs.list("axes")) {
    check(axis >= 0 && axis < call.shape(0).size(), call.op.name, ": axis ", axis,
          " is out of range for shape ", call.shape(0));
  }
}

TensorTypes infer_sum(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  require_axes(call);
  return {{reduced_shape(call.shape(0), call.attrs), sum_dtype(call.dtype(0))}};
}

TensorTypes infer_float_reduce(const InferCall& call) {
  check(is_float(call.dtype(0)), call.op.name, ": needs a float tensor, not ", call.dtype(0),
        "; cast it first");
  return infer_sum(call);
}

Cost reduce_cost(const CostCall& call) {
  const int64_t count = numel(call.call.shape(0));
  return {.flops = count,
          .bytes_read = storage_bytes(call.call.dtype(0), count),
          .bytes_written = storage_bytes(call.outputs[0].dtype, numel(call.outputs[0].shape))};
}

Tensor with_kept_axes(const Tensor& reduced, const Shape& input_shape, const Attrs& attrs) {
  Shape shape = input_shape;
  for (int64_t axis : attrs.list("axes")) shape[static_cast<int>(axis)] = 1;
  return reshape(reduced, shape);
}

Tensor widen(const Tensor& x) {
  return compute_type(x.dtype()) == ComputeType::f32 ? cast(x, DType::f32) : x;
}

std::vector<Sample> reduce_samples_with(const Attrs& extra, bool with_empty) {
  std::vector<Sample> samples;
  const auto add = [&](const Shape& shape, const Axes& axes, bool keep) {
    Attrs attrs{{"axes", axes}, {"keep_dims", keep}};
    for (const Attr& attr : extra) attrs.add(attr);
    samples.push_back({{sample_values(shape, 60 + static_cast<uint32_t>(samples.size()))}, attrs});
  };
  add({}, {}, false);
  add({5}, {0}, false);
  add({3, 70}, {1}, true);
  add({70, 3}, {0}, false);
  add({2, 3, 4, 5}, {1, 3}, false);
  add({2, 3, 4, 5}, {0, 2}, true);
  add({2, 3, 4}, {0, 1, 2}, false);
  add({3, 2500}, {1}, false);    // several tiles in a row
  add({2500, 150}, {0}, false);  // and down columns, in more than one block
  add({40000}, {0}, false);
  add({0, 3}, {1}, false);
  if (with_empty) add({3, 0}, {1}, true);
  return samples;
}

}  // namespace brrr
