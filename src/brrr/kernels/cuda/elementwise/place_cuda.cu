// Ops that are copies into parts of a result.
#include "brrr/kernels/calls/kernel_layouts.h"
#include "brrr/kernels/cuda/device/elements.cuh"
#include "brrr/kernels/cuda/elementwise/copy_cuda.h"

namespace brrr::kernels {
namespace {

bool is_same_memory(const Operand& a, const Operand& b) {
  return a.base == b.base && *a.layout == *b.layout;
}

void copy_into(const CudaCall& call, const Operand& from, const Layout& place) {
  const Operand& output = call.output(0);
  copy_elements_cuda(call, from, {output.base, &place, output.dtype});
}

// Small parts by one launch for as many as fit its parameters: the norms of all gradients as one tensor.
constexpr int kPartsOfLaunch = 240;
constexpr int64_t kSmallConcat = int64_t{1}
                                 << 20;  // elements; larger parts have wide copies of their own

template <typename Bits>
struct JoinSmallParts {
  const Bits* from[kPartsOfLaunch] = {};
  int32_t ends[kPartsOfLaunch] = {};  // in a row of these parts; the first begins at 0
  int32_t parts = 0;
  Bits* to = nullptr;        // where the first part goes
  int64_t row_elements = 0;  // of the output

  __device__ void operator()(int64_t i) const {
    const int32_t width = ends[parts - 1];
    const auto row = static_cast<int32_t>(i / width), col = static_cast<int32_t>(i % width);
    int first = 0, behind = parts - 1;  // the first part that ends behind the column
    while (first < behind) {
      const int middle = (first + behind) / 2;
      if (ends[middle] > col) {
        behind = middle;
      } else {
        first = middle + 1;
      }
    }
    const int32_t begin = first == 0 ? 0 : ends[first - 1];
    to[row * row_elements + col] = from[first][row * (ends[first] - begin) + col - begin];
  }
};

template <typename Bits>
void join_small_parts(const CudaCall& call, int64_t rows) {
  Bits* to = Elements(call.output(0)).as<Bits>();
  JoinSmallParts<Bits> join;
  join.row_elements = call.output(0).count() / rows;
  const auto launch = [&] {
    if (join.parts == 0) return;
    const int32_t width = join.ends[join.parts - 1];
    join.to = to;
    launch_for_each(call, rows * width, join);
    to += width;
    join.parts = 0;
  };
  for (const Operand& part : call.inputs) {
    if (part.count() == 0) continue;
    if (join.parts == kPartsOfLaunch) launch();
    const int32_t begin = join.parts == 0 ? 0 : join.ends[join.parts - 1];
    join.from[join.parts] = Elements(part).as<const Bits>();
    join.ends[join.parts++] = begin + static_cast<int32_t>(part.count() / rows);
  }
  launch();
}

bool has_many_small_parts(const CudaCall& call) {
  constexpr size_t kFew = 4;
  const Operand& output = call.output(0);
  if (call.inputs.size() <= kFew || output.count() == 0 || output.count() > kSmallConcat ||
      is_packed(output.dtype) || !output.layout->is_contiguous())
    return false;
  return std::all_of(call.inputs.begin(), call.inputs.end(), [&](const Operand& part) {
    return part.dtype == output.dtype && part.layout->is_contiguous();
  });
}

}  // namespace

void concat_cuda(const CudaCall& call) {
  const Operand& output = call.output(0);
  const int axis = normalize_axis(call.attrs.integer("axis"), output.shape().size(), "concat");
  if (has_many_small_parts(call)) {
    int64_t rows = 1;
    for (int a = 0; a < axis; ++a) rows *= output.shape()[a];
    switch (bit_size(output.dtype)) {
      case 8: return join_small_parts<uint8_t>(call, rows);
      case 16: return join_small_parts<uint16_t>(call, rows);
      case 32: return join_small_parts<uint32_t>(call, rows);
      default: return join_small_parts<uint64_t>(call, rows);
    }
  }
  int64_t start = 0;
  for (const Operand& part : call.inputs) {
    const int64_t stop = start + part.shape()[axis];
    copy_into(call, part, slice_layout(*output.layout, axis, {start, stop}));
    start = stop;
  }
}

// Fills the border slab by slab, as pad_cpu does: every element is written once.
void pad_cuda(const CudaCall& call) {
  const Operand& output = call.output(0);
  const double value = call.attrs.number("value");
  const Axes &before = call.attrs.list("before"), &after = call.attrs.list("after");
  const auto fill = [&](const Layout& slab) {
    fill_elements_cuda(call, {output.base, &slab, output.dtype}, value);
  };
  Layout inside = *output.layout;
  for (int axis = 0; axis < inside.rank(); ++axis) {
    const int64_t size = inside.shape[axis];
    fill(slice_layout(inside, axis, {0, before[axis]}));
    fill(slice_layout(inside, axis, {size - after[axis], size}));
    inside = slice_layout(inside, axis, {before[axis], size - after[axis]});
  }
  copy_into(call, call.input(0), inside);
}

void flip_cuda(const CudaCall& call) {
  const Operand& x = call.input(0);
  if (x.count() == 0) return;
  const Layout backwards = flipped_layout(*x.layout, call.attrs);
  copy_elements_cuda(call, {x.base, &backwards, x.dtype}, call.output(0));
}

void place_slice_cuda(const CudaCall& call) {
  const Operand& output = call.output(0);
  cuda::fill_zero(Elements(output).base,
                  static_cast<size_t>(storage_bytes(output.dtype, output.count())), call.stream);
  const Axes& range = call.attrs.list("range");
  copy_into(
      call, call.input(0),
      slice_layout(*output.layout, call.attrs.integer("axis"), {range[0], range[1], range[2]}));
}

// The output may be the first input's own memory; then only the view is written.
void update_view_cuda(const CudaCall& call) {
  const Operand &x = call.input(0), &output = call.output(0);
  if (!is_same_memory(x, output)) copy_elements_cuda(call, x, output);
  const Layout place{call.attrs.list("shape"), call.attrs.list("strides"),
                     call.attrs.integer("offset") + output.layout->offset};
  copy_into(call, call.input(1), place);
}

namespace {

// The source goes to [position, position + n) of an axis, the position being data: one for all rows of the
// first axis, or one a row. A position that puts it outside is noted as a fault and nothing is written.
template <typename Bits>
struct PlaceAtData {
  const Bits* source;
  Bits* output;
  const int64_t* positions;
  Walk source_walk;           // over the source's elements
  Walk output_walk;           // the same elements in the output, were the position 0
  int64_t row_elements;       // of the source, in one row of the first axis
  int64_t position_stride;    // 0: one for all
  int64_t axis_stride, last;  // of the output; the largest position
  cuda::FaultNote note;

  __device__ void operator()(int64_t i) const {
    const int64_t row = position_stride == 0 ? 0 : i / row_elements;
    const int64_t position = positions[row * position_stride];
    if (!note.accepts(position, last + 1)) return;
    output[output_walk.position(i) + position * axis_stride] = source[source_walk.position(i)];
  }
};

}  // namespace

void update_slice_cuda(const CudaCall& call) {
  const Operand &x = call.input(0), &source = call.input(1), &position = call.input(2),
                &output = call.output(0);
  if (!is_same_memory(x, output)) copy_elements_cuda(call, x, output);
  if (source.count() == 0) return;
  const int axis = normalize_axis(call.attrs.integer("axis"), x.shape().size(), "update_slice");
  Layout hole = *output.layout;
  hole.shape = source.shape();
  const bool per_row = position.count() > 1;
  const Elements from(source), to(output), where(position);
  const auto place = [&]<typename Bits>() {
    launch_for_each(call, source.count(),
                    PlaceAtData<Bits>{
                        from.as<const Bits>(), to.as<Bits>(), where.as<const int64_t>(),
                        walk_of(*source.layout), walk_of(hole), source.count() / source.shape()[0],
                        per_row ? position.layout->strides[0] : 0, output.layout->strides[axis],
                        x.shape()[axis] - source.shape()[axis], fault_note(call)});
  };
  switch (bit_size(x.dtype)) {
    case 8: return place.template operator()<uint8_t>();
    case 16: return place.template operator()<uint16_t>();
    case 32: return place.template operator()<uint32_t>();
    default: return place.template operator()<uint64_t>();
  }
}

namespace {

// x where col <= row + diagonal (lower) or col >= row + diagonal, else 0.
template <typename Bits>
struct Triangle {
  const Bits* x;
  Bits* y;
  Walk x_walk, y_walk;
  int64_t rows, cols, diagonal;
  bool lower;
  __device__ void operator()(int64_t i) const {
    const int64_t col = i % cols, edge = i / cols % rows + diagonal;
    const bool kept = lower ? col <= edge : col >= edge;
    y[y_walk.position(i)] = kept ? x[x_walk.position(i)] : Bits{0};
  }
};

void keep_triangle(const CudaCall& call, bool lower) {
  const Operand &x = call.input(0), &y = call.output(0);
  if (y.count() == 0) return;
  const int64_t cols = y.shape().back(), rows = y.shape()[y.shape().size() - 2];
  // Where the diagonal can still make a difference: row + diagonal must not overflow.
  const int64_t diagonal = std::clamp(call.attrs.integer("diagonal"), -rows, cols);
  const auto run = [&]<typename Bits>() {
    launch_for_each(
        call, y.count(),
        Triangle<Bits>{Elements(x).as<const Bits>(), Elements(y).as<Bits>(), walk_of(*x.layout),
                       walk_of(*y.layout), rows, cols, diagonal, lower});
  };
  switch (bit_size(x.dtype)) {
    case 8: return run.template operator()<uint8_t>();
    case 16: return run.template operator()<uint16_t>();
    case 32: return run.template operator()<uint32_t>();
    default: return run.template operator()<uint64_t>();
  }
}

}  // namespace

void tril_cuda(const CudaCall& call) { keep_triangle(call, true); }
void triu_cuda(const CudaCall& call) { keep_triangle(call, false); }

}  // namespace brrr::kernels
