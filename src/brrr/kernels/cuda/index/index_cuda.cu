// Elements and rows picked by ids, additions at places that ids name, and windows.
#include "brrr/kernels/calls/kernel_layouts.h"
#include "brrr/kernels/cuda/device/elements.cuh"
#include "brrr/kernels/cuda/elementwise/copy_cuda.h"
#include "brrr/kernels/cuda/index/index_cuda.h"

namespace brrr::kernels {
namespace {

// y[i] = x[position of i on the other axes + ids[i] step]
template <typename Bits>
struct Pick {
  const Bits* x;
  Bits* y;
  Elements ids;
  Walk x_walk, id_walk, y_walk;  // all over the elements of y; x_walk stands still on the axis
  int64_t step, size;
  cuda::FaultNote note;

  __device__ void operator()(int64_t i) const {
    const auto id = ids.load<int64_t>(id_walk.position(i));
    const bool known = note.accepts(id, size);
    y[y_walk.position(i)] = known ? x[x_walk.position(i) + id * step] : Bits{};
  }
};

struct PickLayouts {
  Layout x, ids;  // of the shape of the result
  int64_t step, size;
};

// Rows that all have the same id along the last axis are moved in chunks of up to 16 bytes.
void pick(const CudaCall& call, PickLayouts layouts) {
  const Operand &x = call.input(0), &ids = call.input(1), &y = call.output(0);
  if (y.count() == 0) return;
  const Elements source(x), target(y);
  const int64_t element_bytes = bit_size(x.dtype) / 8;
  int64_t bytes = element_bytes;
  Layout to = *y.layout;
  to.offset = layouts.x.offset = layouts.ids.offset = 0;
  if (to.rank() > 0 && layouts.ids.strides.back() == 0 && layouts.ids.rank() == to.rank()) {
    const ChunkOperand operands[] = {{source.base, &layouts.x}, {target.base, &to}};
    bytes = chunk_bytes_of(operands, element_bytes);
    while (bytes > element_bytes && layouts.step * element_bytes % bytes != 0) bytes /= 2;
  }
  const int64_t factor = bytes / element_bytes;
  if (factor > 1) {
    layouts.x = in_chunks(layouts.x, factor);
    to = in_chunks(to, factor);
    layouts.ids.shape.back() /= factor;
    layouts.step /= factor;
  }
  const Layout* const all[] = {&layouts.x, &layouts.ids, &to};
  const LoopNest nest = make_nest(to.shape, all);
  visit_chunk(bytes, [&]<typename Bits>() {
    launch_for_each(call, numel(to.shape),
                    Pick<Bits>{source.as<const Bits>(), target.as<Bits>(), Elements(ids),
                               walk_of(nest, 0), walk_of(nest, 1), walk_of(nest, 2), layouts.step,
                               layouts.size, fault_note(call)});
  });
}

}  // namespace

void gather_cuda(const CudaCall& call) {
  const Operand &x = call.input(0), &index = call.input(1);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.shape().size(), "gather");
  PickLayouts layouts{.x = {index.shape(), x.layout->strides, 0},
                      .ids = *index.layout,
                      .step = x.layout->strides[axis],
                      .size = x.shape()[axis]};
  layouts.x.strides[axis] = 0;
  pick(call, layouts);
}

void embedding_cuda(const CudaCall& call) {
  const Operand &table = call.input(0), &ids = call.input(1), &y = call.output(0);
  PickLayouts layouts{.x = {y.shape(), Strides(y.shape().size(), 0), 0},
                      .ids = *ids.layout,
                      .step = table.layout->strides[0],
                      .size = table.shape()[0]};
  layouts.x.strides.back() = table.layout->strides[1];
  layouts.ids.shape.push_back(y.shape().back());
  layouts.ids.strides.push_back(0);
  pick(call, layouts);
}

void index_select_cuda(const CudaCall& call) {
  const Operand &x = call.input(0), &ids = call.input(1), &y = call.output(0);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.shape().size(), "index_select");
  PickLayouts layouts{.x = {y.shape(), x.layout->strides, 0},
                      .ids = {y.shape(), Strides(y.shape().size(), 0), 0},
                      .step = x.layout->strides[axis],
                      .size = x.shape()[axis]};
  layouts.x.strides[axis] = 0;
  layouts.ids.strides[axis] = ids.layout->strides[0];
  pick(call, layouts);
}

// ---- scatter_add: a lane is one place on all axes but the one that the index moves along. A thread owns a
// lane and adds in the order of the index, so there is one order of additions and nothing to race for.

namespace {

template <typename C>
struct AddLane {
  Elements index, source;
  C* total;
  Walk index_lane, source_lane, total_lane;
  int64_t length, index_step, source_step, total_step, size;
  cuda::FaultNote note;

  __device__ void operator()(int64_t lane) const {
    const int64_t ids = index_lane.position(lane), values = source_lane.position(lane);
    C* const sums = total + total_lane.position(lane);
    for (int64_t i = 0; i < length; ++i) {
      const auto id = index.load<int64_t>(ids + i * index_step);
      if (!note.accepts(id, size)) continue;
      C& sum = sums[id * total_step];
      sum = add_wrapping(sum, source.load<C>(values + i * source_step));
    }
  }
};

// Splits off the last axis: the layout of the lanes and the step along the axis.
struct Lanes {
  Walk walk;
  int64_t step;
  explicit Lanes(Layout layout) : step(layout.strides.back()) {
    layout.shape.pop_back();
    layout.strides.pop_back();
    walk = walk_of(layout);
  }
};

}  // namespace

void scatter_add_cuda(const CudaCall& call) {
  const Operand &x = call.input(0), &index = call.input(1), &source = call.input(2),
                &output = call.output(0);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.shape().size(), "scatter_add");
  const Layout packed = contiguous_layout(x.shape());
  const bool in_place = scatter_adds_in_place(output);
  const Operand total =
      in_place ? output
               : Operand{call.workspace.data(), &packed, natural_dtype(compute_type(output.dtype))};
  copy_elements_cuda(call, x, total);
  if (index.count() > 0) {
    Layout places = axis_last(packed, axis);
    const Layout indices = axis_last(*index.layout, axis);
    places.shape = indices.shape;
    const Lanes index_lanes(indices), source_lanes(axis_last(*source.layout, axis)), sums(places);
    const int64_t length = indices.shape.back();
    visit_wrapping(compute_type(output.dtype), [&]<typename C>() {
      launch_for_each(
          call, index.count() / length,
          AddLane<C>{Elements(index), Elements(source), Elements(total).as<C>(), index_lanes.walk,
                     source_lanes.walk, sums.walk, length, index_lanes.step, source_lanes.step,
                     sums.step, x.shape()[axis], fault_note(call)});
    });
  }
  if (!in_place) copy_elements_cuda(call, total, output);
}

// ---- max_pool2d: a thread has a window; the first of equals and NaN win, as on the cpu.

namespace {

template <typename C>
struct PoolWindow {
  Elements x, values;
  int64_t* places;
  Walk planes;
  int64_t height, width, row_step, col_step, rows, cols;
  int64_t kernel[2], stride[2], padding[2];

  __device__ void operator()(int64_t i) const {
    const int64_t plane = i / (rows * cols), row = i / cols % rows, col = i % cols;
    const int64_t start = planes.position(plane);
    const int64_t top = row * stride[0] - padding[0], left = col * stride[1] - padding[1];
    C best = 0;
    int64_t place = -1;
    for (int64_t r = max(int64_t{0}, top); r < min(height, top + kernel[0]); ++r) {
      for (int64_t c = max(int64_t{0}, left); c < min(width, left + kernel[1]); ++c) {
        const C value = x.load<C>(start + r * row_step + c * col_step);
        if (place < 0 || value > best || (value != value && best == best)) {
          best = value;
          place = r * width + c;
        }
      }
    }
    values.store<C>(i, best);
    places[i] = place;
  }
};

}  // namespace

void max_pool2d_cuda(const CudaCall& call) {
  const Operand &x = call.input(0), &values = call.output(0), &places = call.output(1);
  const Axes &kernel = call.attrs.list("kernel"), &stride = call.attrs.list("stride");
  const Axes& padding = call.attrs.list("padding");
  Layout planes = *x.layout;
  const int64_t col_step = planes.strides.back(), width = planes.shape.back();
  planes.shape.pop_back(), planes.strides.pop_back();
  const int64_t row_step = planes.strides.back(), height = planes.shape.back();
  planes.shape.pop_back(), planes.strides.pop_back();
  const int rank = values.shape().size();
  visit_compute(compute_type(x.dtype), [&]<typename C>() {
    launch_for_each(call, values.count(),
                    PoolWindow<C>{Elements(x),
                                  Elements(values),
                                  Elements(places).as<int64_t>(),
                                  walk_of(planes),
                                  height,
                                  width,
                                  row_step,
                                  col_step,
                                  values.shape()[rank - 2],
                                  values.shape()[rank - 1],
                                  {kernel[0], kernel[1]},
                                  {stride[0], stride[1]},
                                  {padding[0], padding[1]}});
  });
}

}  // namespace brrr::kernels
