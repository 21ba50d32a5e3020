// Turns rows by a table of cosines and sines, one row a position. A piece is some positions of all heads
// of one batch, so that its part of the table is read from memory once.
#include "brrr/kernels/cpu/rows/rope_cpu.h"

#include <algorithm>
#include <cmath>

#include "brrr/kernels/cpu/elementwise/convert_cpu.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"
#include "brrr/kernels/cpu/rows/rope_tiles.h"

namespace brrr::kernels {
namespace {

template <typename T>
RopeKernels<T> kernels_for() {
  if constexpr (sizeof(T) == 4)
    return rope_kernels_f32();
  else
    return rope_kernels_f64();
}

template <typename T>
void fill_tables(const KernelCall& call) {
  const Operand& positions = call.input(0);
  const Layout& layout = *positions.layout;
  const int64_t pairs = call.attrs.integer("pairs"), seq = layout.shape.back(),
                rows = numel(layout.shape);
  const std::vector<double> frequencies = rope_frequencies(call.attrs.number("base"), pairs);
  const RopeKernels<T> kernels = kernels_for<T>();
  T* table = call.output(0).data<T>();
  const int64_t rows_a_piece = std::max<int64_t>(1, kTileElements / std::max<int64_t>(1, pairs));
  call.pool.for_each_piece((rows + rows_a_piece - 1) / rows_a_piece, [&](int64_t piece) {
    const int64_t end = std::min(rows, (piece + 1) * rows_a_piece);
    for (int64_t r = piece * rows_a_piece; r < end; ++r) {
      const int64_t batch_start = layout.rank() == 2 ? r / seq * layout.strides[0] : 0;
      const int64_t position =
          positions.data<int64_t>()[batch_start + r % seq * layout.strides.back()];
      kernels.fill_table(static_cast<double>(position), frequencies.data(), pairs,
                         table + r * 2 * pairs);
    }
  });
}

// The rows [first, first + rows) of the table for a batch: where they lie, or converted into `buffer`.
template <typename T>
const T* table_rows(const Operand& table, int64_t batch, int64_t first, int64_t rows,
                    std::vector<T>& buffer) {
  const Layout& layout = *table.layout;
  const int64_t row_elements = 2 * layout.shape.back();
  const ComputeType type = sizeof(T) == 4 ? ComputeType::f32 : ComputeType::f64;
  const int64_t skipped = layout.rank() == 4 ? batch * layout.shape[1] + first : first;
  if (table.dtype == natural_dtype(type) && layout.is_contiguous())
    return table.data<T>() + skipped * row_elements;
  const Layout* operand = &layout;
  const LoopNest nest = make_nest(layout.shape, {&operand, 1});
  buffer.resize(static_cast<size_t>(rows * row_elements));
  T* out = buffer.data();
  for_each_run(nest, 0, skipped * row_elements, rows * row_elements,
               [&](int64_t position, int64_t run, int64_t stride) {
                 load_elements(table.dtype, table.base, layout.offset + position, stride, run, type,
                               out);
                 out += run;
               });
  return buffer.data();
}

// Some rows of one head, from and to memory of any dtype, through buffers where that is not T's own.
template <typename T>
void turn_rows(const KernelCall& call, const T* table, int64_t head_of_all, int64_t first,
               int64_t rows) {
  const Operand &x = call.input(0), &y = call.output(0);
  const Layout& in = *x.layout;
  const int64_t seq = in.shape[2], columns = in.shape[3], batch = head_of_all / in.shape[1];
  const int64_t x_start = in.offset + batch * in.strides[0] +
                          head_of_all % in.shape[1] * in.strides[1] + first * in.strides[2];
  const int64_t y_start = y.layout->offset + (head_of_all * seq + first) * columns;
  const int64_t pairs = call.input(1).shape().back();
  RopeRows<T> part{reinterpret_cast<const T*>(x.base) + x_start,
                   in.strides[2],
                   reinterpret_cast<T*>(y.base) + y_start,
                   columns,
                   table,
                   rows,
                   columns,
                   pairs,
                   call.attrs.flag("interleaved"),
                   call.attrs.flag("inverse")};
  const RopeKernels<T> kernels = kernels_for<T>();
  if (is_natural(x.dtype) && in.strides[3] == 1) return kernels.turn(part);
  const ComputeType type = compute_type(x.dtype);
  std::vector<T> before(static_cast<size_t>(columns)), after(static_cast<size_t>(columns));
  part.x = before.data();
  part.y = after.data();
  part.rows = 1;
  for (int64_t r = 0; r < rows; ++r, part.table += 2 * pairs) {
    load_elements(x.dtype, x.base, x_start + r * in.strides[2], in.strides[3], columns, type,
                  before.data());
    kernels.turn(part);
    store_elements(type, after.data(), y.dtype, y.base, y_start + r * columns, 1, columns);
  }
}

template <typename T>
void run(const KernelCall& call) {
  const Shape& shape = call.input(0).shape();
  const int64_t heads = shape[1], seq = shape[2];
  const int64_t rows = std::clamp<int64_t>(2 * kPieceElements / (heads * shape[3]), 1, seq),
                parts = (seq + rows - 1) / rows;
  call.pool.for_each_piece(shape[0] * parts, [&](int64_t piece) {
    const int64_t batch = piece / parts, first = piece % parts * rows,
                  count = std::min(rows, seq - first);
    std::vector<T> buffer;
    const T* table = table_rows(call.input(1), batch, first, count, buffer);
    for (int64_t head = 0; head < heads; ++head)
      turn_rows(call, table, batch * heads + head, first, count);
  });
}

}  // namespace

std::vector<double> rope_frequencies(double base, int64_t pairs) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < pairs; ++i)
    frequencies.push_back(std::pow(base, -static_cast<double>(i) / static_cast<double>(pairs)));
  return frequencies;
}

void rope_table_cpu(const KernelCall& call) {
  if (call.output(0).count() == 0) return;
  call.output(0).dtype == DType::f64 ? fill_tables<double>(call) : fill_tables<float>(call);
}

void rope_cpu(const KernelCall& call) {
  if (call.output(0).count() == 0) return;
  call.input(0).dtype == DType::f64 ? run<double>(call) : run<float>(call);
}

}  // namespace brrr::kernels
