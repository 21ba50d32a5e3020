// scatter: elements of x replaced at the places that an index names. Where an index names a place more
// than once the last one along the axis wins, on every device and for any number of threads.
#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/index/index_tiles.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/index/index_rules.h"
#include "brrr/ops/index/sort.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/pad_roll.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

// Which elements of the index are the last along the axis to name their place. Sorting is stable, so the last
// of a run of equal indices is the last writer.
Tensor last_writers(const Tensor& index, int axis) {
  const int64_t count = index.dim(axis);
  const Sorted sorted = sort(index, axis);
  const Tensor changes =
      not_equal(slice(sorted.values, axis, {1}), slice(sorted.values, axis, {0, count - 1}));
  Shape end = index.shape();
  end[axis] = 1;
  const Tensor is_last = concat(
      {cast(changes, DType::i64), ones(end, {.dtype = DType::i64, .device = index.device()})},
      axis);
  return scatter_add(zeros_like(index), axis, sorted.indices, is_last);
}

// i along the axis, for every element of a tensor like `index`.
Tensor positions_along(const Tensor& index, int axis) {
  Shape shape(index.rank(), 1);
  shape[axis] = index.dim(axis);
  const Tensor positions = arange(index.dim(axis), index.device());
  return expand(reshape(positions, shape), index.shape());
}

// For each place of x: is it named, and by which element of the index. Then the source is read there, so that
// no arithmetic touches its elements.
Tensors scatter_compose(const ComposeCall& call) {
  const Tensor &x = call.input(0), &source = call.input(2);
  if (source.numel() == 0) return {clone(x)};
  const Tensor index = cast(call.input(1), DType::i64);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.rank(), "scatter");
  Shape named = index.shape();  // the part of x that the index can reach
  named[axis] = x.dim(axis);
  const TensorOptions whole{.dtype = DType::i64, .device = x.device()};
  const Tensor wins = last_writers(index, axis);
  const Tensor is_hit = scatter_add(zeros(named, whole), axis, index, wins);
  const Tensor writer =
      scatter_add(zeros(named, whole), axis, index, wins * positions_along(index, axis));
  Tensor written = gather(source, axis, writer), hit = is_hit;
  if (named != x.shape()) {
    Axes after;
    for (int a = 0; a < x.rank(); ++a) after.push_back(x.dim(a) - named[a]);
    const Axes before(x.rank(), 0);
    written = pad(written, before, after);
    hit = pad(hit, before, after);
  }
  return {where(hit > 0, written, x)};
}

// Index by index in row-major order, so that the last writer along the axis is the last to write. One thread:
// the work is a copy of scattered elements.
void scatter_cpu(const KernelCall& call) {
  const Operand &x = call.input(0), &index = call.input(1), &source = call.input(2);
  const Operand& output = call.output(0);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.shape().size(), "scatter");
  kernels::check_indices(call, index, x.shape(), axis);
  kernels::run_copy({call.op, {&x, 1}, {&output, 1}, call.attrs, {}, call.pool});
  Layout lane_starts{.shape = index.shape(), .strides = output.layout->strides};
  const int64_t step = lane_starts.strides[axis], count = index.count();
  lane_starts.strides[axis] = 0;  // the index moves along this axis
  const kernels::LoopNest nest =
      kernels::nest_of(index.shape(), {index.layout, source.layout, &lane_starts});
  int64_t indices[kTileElements], from[kTileElements], to[kTileElements];
  for (int64_t begin = 0; begin < count; begin += kTileElements) {
    const int64_t n = std::min(kTileElements, count - begin);
    kernels::load_tile(nest, 0, index, begin, n, ComputeType::i64, indices);
    kernels::fill_positions(nest, 1, begin, n, from);
    kernels::fill_positions(nest, 2, begin, n, to);
    visit_dtype(x.dtype, [&]<typename T>() {
      const T* in = source.data<T>();
      T* out = output.data<T>();
      for (int64_t i = 0; i < n; ++i) out[to[i] + indices[i] * step] = in[from[i]];
    });
  }
}

}  // namespace

const OpDef scatter_op{.name = "scatter",
                       .formula = "x, with source in place of the elements that the index names",
                       .kind = OpKind::other,
                       .dtypes = kAnyDType,
                       .flops_per_element = 0,
                       .infer = infer_scatter,
                       .compose = scatter_compose,
                       .cpu = scatter_cpu,
                       .samples = scatter_samples};

Tensor scatter(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source) {
  return call_one(scatter_op, {x, index, source}, {{"axis", axis}});
}

}  // namespace brrr
