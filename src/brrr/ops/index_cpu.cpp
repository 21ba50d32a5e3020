// Gathers cut the result into tiles of the flat index space. Additions give every piece outputs of
// its own and walk the sources in index order, so a sum has one order of additions, whatever the
// pieces and threads are.
#include "brrr/ops/index_cpu.h"

#include "brrr/ops/convert_cpu.h"
#include "brrr/ops/elementwise_cpu.h"
#include "brrr/ops/loop_nest.h"
#include "brrr/ops/wrap.h"

namespace brrr {
namespace {

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Calls visit(begin, count) for tiles that cover [0, elements), on all threads.
template <typename Visit>
void for_each_tile(ThreadPool& pool, int64_t elements, const Visit& visit) {
  pool.for_each_piece(divide_up(elements, kPieceElements), [&](int64_t piece) {
    const int64_t end = std::min(elements, (piece + 1) * kPieceElements);
    for (int64_t tile = piece * kPieceElements; tile < end; tile += kTileElements) {
      visit(tile, std::min(kTileElements, end - tile));
    }
  });
}

LoopNest nest_of(const Shape& shape, std::initializer_list<const Layout*> layouts) {
  return make_nest(shape, {layouts.begin(), layouts.size()});
}

// Elements [begin, begin + count) of the flat index space as operand `o` sees them: their values in
// a compute type, or their positions behind the operand's first element.
void load_tile(const LoopNest& nest, int o, const Operand& operand, int64_t begin, int64_t count,
               ComputeType type, void* out) {
  auto* next = static_cast<std::byte*>(out);
  for_each_run(nest, o, begin, count, [&](int64_t position, int64_t run, int64_t stride) {
    load_elements(operand.dtype, operand.base, operand.layout->offset + position, stride, run, type,
                  next);
    next += run * compute_bytes(type);
  });
}
void fill_positions(const LoopNest& nest, int o, int64_t begin, int64_t count, int64_t* out) {
  for_each_run(nest, o, begin, count, [&](int64_t position, int64_t run, int64_t stride) {
    for (int64_t i = 0; i < run; ++i) *out++ = position + i * stride;
  });
}

Shape place_in(const Shape& shape, int64_t flat) {
  Shape place(shape.size(), 0);
  for (int axis = shape.size() - 1; axis >= 0; --axis) {
    place[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return place;
}

// Throws Error for the first index that names no place along `axis` of `shape`.
void check_indices(const KernelCall& call, const Operand& index, const Shape& shape, int axis) {
  const LoopNest nest = nest_of(index.shape(), {index.layout});
  const int64_t size = shape[axis];
  for_each_tile(call.pool, index.count(), [&](int64_t begin, int64_t count) {
    int64_t values[kTileElements];
    load_tile(nest, 0, index, begin, count, ComputeType::i64, values);
    bool inside = true;
    for (int64_t i = 0; i < count; ++i) inside &= values[i] >= 0 && values[i] < size;
    if (inside) return;
    for (int64_t i = 0; i < count; ++i) {
      check(values[i] >= 0 && values[i] < size, call.op.name, ": index ", values[i],
            " at position ", place_in(index.shape(), begin + i), " is out of range for axis ", axis,
            " of shape ", shape, "; use 0 <= index < ", size);
    }
  });
}

template <typename T>
void copy_row(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t count) {
  if (from_step == 1 && to_step == 1) {
    std::copy_n(from, count, to);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
  }
}

// Sums can grow in the result itself where it holds the compute type without gaps.
bool adds_in_place(const Operand& output) {
  return is_natural(output.dtype) && output.layout->is_contiguous();
}

// Axis `axis` first, the others in order.
Layout axis_first(const Layout& layout, int axis) {
  Axes order{axis};
  for (int a = 0; a < layout.rank(); ++a) {
    if (a != axis) order.push_back(a);
  }
  return permute_layout(layout, order);
}

// The additions of scatter_add over the flat space [axis, lanes], a lane being one place on all the
// other axes. An index reaches only its own lane of `total`.
template <typename T>
struct ScatterAdd {
  const Operand &index, &source;
  LoopNest nest;  // index, source, and where in `total` the lane begins
  T* total;
  int64_t step;  // between neighbours of a lane in `total`

  // Adds flat elements [begin, end) whose index is in [low, high).
  void add(int64_t begin, int64_t end, int64_t low, int64_t high) const {
    int64_t indices[kTileElements], lanes[kTileElements];
    T values[kTileElements];
    for (int64_t tile = begin; tile < end; tile += kTileElements) {
      const int64_t count = std::min(kTileElements, end - tile);
      load_tile(nest, 0, index, tile, count, ComputeType::i64, indices);
      load_tile(nest, 1, source, tile, count, compute_type(source.dtype), values);
      fill_positions(nest, 2, tile, count, lanes);
      for (int64_t i = 0; i < count; ++i) {
        if (indices[i] < low || indices[i] >= high) continue;
        T& sum = total[lanes[i] + indices[i] * step];
        sum = add_wrapping(sum, values[i]);
      }
    }
  }
};

constexpr int64_t kLanesPerPiece = 256;

// The cut may follow the number of threads here: an output is added to by one piece alone, in the order
// of the indices, whichever cut is taken.
template <typename T>
void scatter_add_all(const KernelCall& call, const ScatterAdd<T>& adder, int axis) {
  const int64_t length = adder.index.shape()[axis], size = call.output(0).shape()[axis];
  const int64_t lanes = adder.index.count() / length;
  const int64_t pieces = divide_up(lanes, kLanesPerPiece);
  if (lanes <= kLanesPerPiece || pieces < call.pool.threads()) {
    // Few lanes, perhaps long ones: every piece reads all indices and serves its own places.
    const int64_t ranges = std::min<int64_t>(call.pool.threads(), size);
    call.pool.for_each_piece(ranges, [&](int64_t r) {
      adder.add(0, length * lanes, r * size / ranges, (r + 1) * size / ranges);
    });
    return;
  }
  call.pool.for_each_piece(pieces, [&](int64_t piece) {
    const int64_t begin = piece * kLanesPerPiece, end = std::min(lanes, begin + kLanesPerPiece);
    for (int64_t i = 0; i < length; ++i) adder.add(i * lanes + begin, i * lanes + end, 0, size);
  });
}

// starts[r] .. starts[r + 1] are the places in `rows_of` where the dy rows of table row r stand, in
// the order of the ids.
struct RowLists {
  int64_t* starts;   // rows + 1
  int64_t* rows_of;  // positions in dy
};

// A counting sort of the ids, which keeps the order of equal ones.
RowLists list_rows(const KernelCall& call, int64_t rows) {
  const Operand &dy = call.input(0), &ids = call.input(1);
  const Layout dy_rows = select_layout(*dy.layout, -1, 0);
  const LoopNest nest = nest_of(ids.shape(), {ids.layout, &dy_rows});
  auto* const starts = reinterpret_cast<int64_t*>(call.workspace.data());
  const RowLists lists{starts, starts + rows + 1};
  std::fill_n(starts, rows + 1, 0);
  int64_t values[kTileElements], positions[kTileElements];
  const auto for_each_id = [&](auto visit) {
    for (int64_t tile = 0; tile < ids.count(); tile += kTileElements) {
      const int64_t count = std::min(kTileElements, ids.count() - tile);
      load_tile(nest, 0, ids, tile, count, ComputeType::i64, values);
      fill_positions(nest, 1, tile, count, positions);
      for (int64_t i = 0; i < count; ++i) visit(values[i], positions[i]);
    }
  };
  for_each_id([&](int64_t id, int64_t) { ++starts[id + 1]; });
  for (int64_t row = 0; row < rows; ++row) starts[row + 1] += starts[row];
  for_each_id([&](int64_t id, int64_t position) { lists.rows_of[starts[id]++] = position; });
  // Placing moved each start to its row's end, which is the start of the next row: shift back.
  std::copy_backward(starts, starts + rows, starts + rows + 1);
  starts[0] = 0;
  return lists;
}

// Columns that a piece sums at a time: few enough for narrow tables to feed several threads.
constexpr int64_t kSumColumns = 256;

// Rows [row_begin, row_end), columns [col, col + cols) of the gradient; cols <= kSumColumns.
template <typename T>
void sum_rows(const KernelCall& call, const RowLists& lists, int64_t row_begin, int64_t row_end,
              int64_t col, int64_t cols) {
  const Operand &dy = call.input(0), &output = call.output(0);
  const ComputeType type = compute_type(dy.dtype);
  const int64_t dy_step = dy.layout->strides.back();
  const Strides& to = output.layout->strides;
  T sums[kSumColumns], values[kSumColumns];
  for (int64_t row = row_begin; row < row_end; ++row) {
    std::fill_n(sums, cols, T(0));
    for (int64_t i = lists.starts[row]; i < lists.starts[row + 1]; ++i) {
      const int64_t first = dy.layout->offset + lists.rows_of[i] + col * dy_step;
      load_elements(dy.dtype, dy.base, first, dy_step, cols, type, values);
      for (int64_t c = 0; c < cols; ++c) sums[c] = add_wrapping(sums[c], values[c]);
    }
    store_elements(type, sums, output.dtype, output.base,
                   output.layout->offset + row * to[0] + col * to[1], to[1], cols);
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

int64_t scatter_add_workspace(const KernelCall& call) {
  const Operand& output = call.output(0);
  if (adds_in_place(output)) return 0;
  return storage_bytes(natural_dtype(compute_type(output.dtype)), output.count());
}

void scatter_add_cpu(const KernelCall& call) {
  const Operand &x = call.input(0), &index = call.input(1), &output = call.output(0);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.shape().size(), "scatter_add");
  check_indices(call, index, x.shape(), axis);
  const Layout packed = contiguous_layout(x.shape());
  const DType sum_dtype = natural_dtype(compute_type(output.dtype));
  const bool in_place = adds_in_place(output);
  const Operand total = in_place ? output : Operand{call.workspace.data(), &packed, sum_dtype};
  run_copy({call.op, {&x, 1}, {&total, 1}, call.attrs, {}, call.pool});
  if (index.count() > 0) {
    Layout places = axis_first(packed, axis);
    const Layout indices = axis_first(*index.layout, axis);
    const Layout sources = axis_first(*call.input(2).layout, axis);
    const int64_t step = places.strides[0];
    places.shape = indices.shape;
    places.strides[0] = 0;  // the index moves along this axis
    const LoopNest nest = nest_of(indices.shape, {&indices, &sources, &places});
    visit_compute(compute_type(output.dtype), [&]<typename T>() {
      scatter_add_all<T>(call, {index, call.input(2), nest, total.data<T>(), step}, axis);
    });
  }
  if (!in_place) run_copy({call.op, {&total, 1}, {&output, 1}, call.attrs, {}, call.pool});
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

int64_t embedding_grad_workspace(const KernelCall& call) {
  return (call.output(0).shape()[0] + 1 + call.input(1).count()) *
         static_cast<int64_t>(sizeof(int64_t));
}

// dy: ids.shape + [dim], output: [rows, dim].  A piece owns a block of rows and columns; it adds in
// f32 (f64, i64) and rounds once, so that many bf16 gradients of one token do not get lost.
void embedding_grad_cpu(const KernelCall& call) {
  const Operand &ids = call.input(1), &output = call.output(0);
  check_indices(call, ids, output.shape(), 0);
  if (output.count() == 0) return;
  const int64_t rows = output.shape()[0], dim = output.shape()[1];
  const RowLists lists = list_rows(call, rows);
  const int64_t additions_per_row = dim * (1 + ids.count() / rows);
  const int64_t piece_rows = std::max<int64_t>(1, kPieceElements / additions_per_row);
  const int64_t row_blocks = divide_up(rows, piece_rows), col_blocks = divide_up(dim, kSumColumns);
  visit_compute(compute_type(output.dtype), [&]<typename T>() {
    call.pool.for_each_piece(row_blocks * col_blocks, [&](int64_t piece) {
      const int64_t row = piece / col_blocks * piece_rows, col = piece % col_blocks * kSumColumns;
      sum_rows<T>(call, lists, row, std::min(rows, row + piece_rows), col,
                  std::min(kSumColumns, dim - col));
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

}  // namespace brrr
