// Additions at places that ids name. Every piece has outputs of its own and walks the sources in index
// order, so a sum has one order of additions, whatever the pieces and threads are.
#include "brrr/kernels/cpu/elementwise/convert_cpu.h"
#include "brrr/kernels/cpu/index/index_cpu.h"
#include "brrr/kernels/cpu/index/index_tiles.h"
#include "brrr/kernels/scalar/wrap.h"

namespace brrr::kernels {
namespace {

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

}  // namespace

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
    visit_wrapping(compute_type(output.dtype), [&]<typename T>() {
      scatter_add_all<T>(call, {index, call.input(2), nest, total.data<T>(), step}, axis);
    });
  }
  if (!in_place) run_copy({call.op, {&total, 1}, {&output, 1}, call.attrs, {}, call.pool});
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
  visit_wrapping(compute_type(output.dtype), [&]<typename T>() {
    call.pool.for_each_piece(row_blocks * col_blocks, [&](int64_t piece) {
      const int64_t row = piece / col_blocks * piece_rows, col = piece % col_blocks * kSumColumns;
      sum_rows<T>(call, lists, row, std::min(rows, row + piece_rows), col,
                  std::min(kSumColumns, dim - col));
    });
  });
}

}  // namespace brrr::kernels
