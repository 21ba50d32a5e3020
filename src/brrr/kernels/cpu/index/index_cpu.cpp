// Elements and rows picked by ids; index_add_cpu.cpp has the kernels that add.
#include "brrr/kernels/cpu/index/index_cpu.h"

#include "brrr/kernels/cpu/index/index_tiles.h"

namespace brrr::kernels {
namespace {

template <typename T>
void copy_row(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t count) {
  if (from_step == 1 && to_step == 1) {
    std::copy_n(from, count, to);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
  }
}

// Axes [begin, end) of a layout.
Layout some_axes(const Layout& layout, int begin, int end) {
  Layout part{.shape = {}, .strides = {}};
  for (int axis = begin; axis < end; ++axis) {
    part.shape.push_back(layout.shape[axis]);
    part.strides.push_back(layout.strides[axis]);
  }
  return part;
}

// The last axes that both operands walk with one stride each, as far as they come after `axis`.
struct InnerRow {
  int first_axis;
  int64_t count, from_step, to_step;
};
InnerRow find_inner_row(const Layout& from, const Layout& to, int axis) {
  InnerRow row{from.rank(), 1, 0, 0};
  for (int first = from.rank() - 1; first > axis; --first) {
    const Layout a = some_axes(from, first, from.rank()), b = some_axes(to, first, to.rank());
    const LoopNest nest = nest_of(a.shape, {&a, &b});
    if (nest.rank > 1) break;
    row = {first, numel(a.shape), nest.rank == 0 ? 0 : nest.strides[0][0],
           nest.rank == 0 ? 0 : nest.strides[1][0]};
  }
  return row;
}

}  // namespace

void gather_cpu(const KernelCall& call) {
  const Operand &x = call.input(0), &index = call.input(1), &output = call.output(0);
  if (output.count() == 0) return;
  const int axis = normalize_axis(call.attrs.integer("axis"), x.shape().size(), "gather");
  check_indices(call, index, x.shape(), axis);
  Layout lane_starts{.shape = index.shape(), .strides = x.layout->strides};
  lane_starts.strides[axis] = 0;  // the index moves along this axis
  const LoopNest nest = nest_of(index.shape(), {index.layout, &lane_starts, output.layout});
  const int64_t step = x.layout->strides[axis];
  for_each_tile(call.pool, output.count(), [&](int64_t begin, int64_t count) {
    int64_t indices[kTileElements], from[kTileElements], to[kTileElements];
    load_tile(nest, 0, index, begin, count, ComputeType::i64, indices);
    fill_positions(nest, 1, begin, count, from);
    fill_positions(nest, 2, begin, count, to);
    visit_dtype(x.dtype, [&]<typename T>() {
      const T* in = x.data<T>();
      T* out = output.data<T>();
      for (int64_t i = 0; i < count; ++i) out[to[i]] = in[from[i] + indices[i] * step];
    });
  });
}

// table: [rows, dim].  A piece copies whole rows.
void embedding_cpu(const KernelCall& call) {
  const Operand &table = call.input(0), &ids = call.input(1), &output = call.output(0);
  check_indices(call, ids, table.shape(), 0);
  if (output.count() == 0) return;
  const Layout rows = select_layout(*output.layout, -1, 0);
  const LoopNest nest = nest_of(ids.shape(), {ids.layout, &rows});
  const Strides& from = table.layout->strides;
  const int64_t dim = table.shape()[1], to_step = output.layout->strides.back();
  const int64_t piece_rows = std::clamp<int64_t>(kPieceElements / dim, 1, kTileElements);
  call.pool.for_each_piece(divide_up(ids.count(), piece_rows), [&](int64_t piece) {
    int64_t values[kTileElements], to[kTileElements];
    const int64_t begin = piece * piece_rows, count = std::min(piece_rows, ids.count() - begin);
    load_tile(nest, 0, ids, begin, count, ComputeType::i64, values);
    fill_positions(nest, 1, begin, count, to);
    visit_dtype(table.dtype, [&]<typename T>() {
      for (int64_t i = 0; i < count; ++i) {
        copy_row(table.data<T>() + values[i] * from[0], from[1], output.data<T>() + to[i], to_step,
                 dim);
      }
    });
  });
}

// x: [outer..., size, inner...], output: [outer..., ids, inner...].  A piece copies whole inner rows.
void index_select_cpu(const KernelCall& call) {
  const Operand &x = call.input(0), &ids = call.input(1), &output = call.output(0);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.shape().size(), "index_select");
  check_indices(call, ids, x.shape(), axis);
  if (output.count() == 0) return;
  const InnerRow inner = find_inner_row(*x.layout, *output.layout, axis);
  const Layout to_rows = some_axes(*output.layout, 0, inner.first_axis);
  Layout from_rows = some_axes(*x.layout, 0, inner.first_axis), id_of_row = to_rows;
  from_rows.shape = to_rows.shape;
  from_rows.strides[axis] = 0;  // the id moves along this axis
  id_of_row.strides = Strides(to_rows.rank(), 0);
  id_of_row.strides[axis] = ids.layout->strides[0];
  const LoopNest nest = nest_of(to_rows.shape, {&id_of_row, &from_rows, &to_rows});
  const int64_t rows = numel(to_rows.shape), step = x.layout->strides[axis];
  const int64_t piece_rows = std::clamp<int64_t>(kPieceElements / inner.count, 1, kTileElements);
  call.pool.for_each_piece(divide_up(rows, piece_rows), [&](int64_t piece) {
    int64_t values[kTileElements], from[kTileElements], to[kTileElements];
    const int64_t begin = piece * piece_rows, count = std::min(piece_rows, rows - begin);
    load_tile(nest, 0, ids, begin, count, ComputeType::i64, values);
    fill_positions(nest, 1, begin, count, from);
    fill_positions(nest, 2, begin, count, to);
    visit_dtype(x.dtype, [&]<typename T>() {
      for (int64_t i = 0; i < count; ++i) {
        copy_row(x.data<T>() + from[i] + values[i] * step, inner.from_step,
                 output.data<T>() + to[i], inner.to_step, inner.count);
      }
    });
  });
}

// ids: any shape, output: ids.shape + [classes], contiguous.  A piece writes whole rows.
void one_hot_cpu(const KernelCall& call) {
  const Operand &ids = call.input(0), &output = call.output(0);
  const int64_t classes = output.shape().back();
  check_indices(call, ids, output.shape(), output.shape().size() - 1);
  if (output.count() == 0) return;
  const LoopNest nest = nest_of(ids.shape(), {ids.layout});
  const int64_t piece_rows = std::clamp<int64_t>(kPieceElements / classes, 1, kTileElements);
  call.pool.for_each_piece(divide_up(ids.count(), piece_rows), [&](int64_t piece) {
    int64_t values[kTileElements];
    const int64_t begin = piece * piece_rows, count = std::min(piece_rows, ids.count() - begin);
    load_tile(nest, 0, ids, begin, count, ComputeType::i64, values);
    visit_dtype(output.dtype, [&]<typename T>() {
      T* row = output.data<T>() + begin * classes;
      std::fill_n(row, count * classes, T{});
      for (int64_t i = 0; i < count; ++i) row[i * classes + values[i]] = convert_element<T>(1.0);
    });
  });
}

// x: [rows, classes], targets and output: [rows].  One element of each row.
void nll_cpu(const KernelCall& call) {
  const Operand &x = call.input(0), &targets = call.input(1), &output = call.output(0);
  check_indices(call, targets, x.shape(), 1, "target");
  const LoopNest nest = nest_of(targets.shape(), {targets.layout});
  const int64_t row_step = x.layout->strides[0], class_step = x.layout->strides[1];
  for_each_tile(call.pool, output.count(), [&](int64_t begin, int64_t count) {
    int64_t classes[kTileElements];
    load_tile(nest, 0, targets, begin, count, ComputeType::i64, classes);
    visit_dtype(x.dtype, [&]<typename T>() {
      const T* in = x.data<T>();
      visit_compute(compute_type(output.dtype), [&]<typename Loss>() {
        Loss* out = output.data<Loss>();
        for (int64_t i = 0; i < count; ++i) {
          const T chosen = in[(begin + i) * row_step + classes[i] * class_step];
          out[begin + i] = convert_element<Loss>(-convert_element<double>(chosen));
        }
      });
    });
  });
}

}  // namespace brrr::kernels
