// Walking a tensor row by row along its last axis, whatever its strides and dtype.
#pragma once

#include <algorithm>
#include <memory>

#include "brrr/kernels/cpu/elementwise/convert_cpu.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"
#include "brrr/kernels/cpu/elementwise/stream_cpu.h"
#include "brrr/kernels/cpu/rows/row_store.h"

namespace brrr::kernels {

// The rows of an operand: reads and writes one in a compute type.
class Rows {
 public:
  explicit Rows(const Operand& operand) : operand_(operand) {
    const int last = operand.layout->rank() - 1;
    Layout outer = *operand.layout;
    cols_ = outer.shape[last];
    stride_ = outer.strides[last];
    outer.shape.pop_back();
    outer.strides.pop_back();
    rows_ = numel(outer.shape);
    const Layout* layout = &outer;
    nest_ = make_nest(outer.shape, {&layout, 1});
  }

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  void read(int64_t row, ComputeType type, void* out) const {
    if (operand_.source) return operand_.source->read(row * cols_, cols_, type, out);
    load_elements(operand_.dtype, operand_.base, start_of(row), stride_, cols_, type, out);
  }
  void write(int64_t row, ComputeType type, const void* values) const {
    if (operand_.sink) return operand_.sink->write(row * cols_, cols_, type, values);
    store_elements(type, values, operand_.dtype, operand_.base, start_of(row), stride_, cols_);
  }

  // True when every row lies contiguous in the compute type: kernels then work on the storage.
  bool is_direct(ComputeType type) const {
    return !operand_.source && !operand_.sink && operand_.dtype == natural_dtype(type) &&
           (stride_ == 1 || cols_ <= 1);
  }
  // How rows of a result are written: see kernels/cpu/elementwise/stream_cpu.h.
  RowStore store(ComputeType type) const {
    const bool is_large = rows_ * cols_ * compute_bytes(type) >= kStreamBytes;
    return is_large && is_direct(type) ? RowStore::streamed : RowStore::cached;
  }
  // A row to read: in place where it is direct, else a copy in `scratch`.
  const void* view(int64_t row, ComputeType type, void* scratch) const {
    if (is_direct(type)) return address(row, type);
    read(row, type, scratch);
    return scratch;
  }
  // Where to put a row, in place where it is direct; `deliver` brings it home from `scratch`.
  void* target(int64_t row, ComputeType type, void* scratch) const {
    return is_direct(type) ? address(row, type) : scratch;
  }
  void deliver(int64_t row, ComputeType type, const void* values) const {
    if (!is_direct(type)) write(row, type, values);
  }

 private:
  std::byte* address(int64_t row, ComputeType type) const {
    return operand_.base + start_of(row) * compute_bytes(type);
  }
  int64_t start_of(int64_t row) const {
    if (nest_.rank <= 1) {
      return operand_.layout->offset + (nest_.rank == 0 ? 0 : row * nest_.strides[0][0]);
    }
    int64_t start = 0;
    for_each_run(nest_, 0, row, 1, [&](int64_t position, int64_t, int64_t) { start = position; });
    return operand_.layout->offset + start;
  }

  Operand operand_;
  LoopNest nest_;
  int64_t rows_, cols_, stride_;
};

// Calls body(row, buffer) for every row, in pieces cut by shape; `buffer` has room for `buffers` rows
// in the widest compute type and belongs to the piece.
template <typename Body>
void for_each_row(ThreadPool& pool, int64_t rows, int64_t cols, int buffers, const Body& body) {
  if (rows == 0) return;
  const int64_t rows_a_piece = std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, cols));
  pool.for_each_piece((rows + rows_a_piece - 1) / rows_a_piece, [&](int64_t piece) {
    const auto buffer = std::make_unique_for_overwrite<double[]>(
        static_cast<size_t>(std::max<int64_t>(1, buffers * cols)));
    const int64_t end = std::min(rows, (piece + 1) * rows_a_piece);
    for (int64_t row = piece * rows_a_piece; row < end; ++row) body(row, buffer.get());
    finish_stream();
  });
}

}  // namespace brrr::kernels
