// Walking a tensor row by row along its last axis, whatever its strides and dtype.
#pragma once

#include <algorithm>
#include <vector>

#include "brrr/ops/convert_cpu.h"
#include "brrr/ops/elementwise_cpu.h"
#include "brrr/ops/loop_nest.h"

namespace brrr {

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
    load_elements(operand_.dtype, operand_.base, start_of(row), stride_, cols_, type, out);
  }
  void write(int64_t row, ComputeType type, const void* values) const {
    store_elements(type, values, operand_.dtype, operand_.base, start_of(row), stride_, cols_);
  }

 private:
  int64_t start_of(int64_t row) const {
    int64_t start = 0;
    for_each_run(nest_, 0, row, 1, [&](int64_t position, int64_t, int64_t) { start = position; });
    return operand_.layout->offset + start;
  }

  Operand operand_;
  LoopNest nest_;
  int64_t rows_, cols_, stride_;
};

// Calls body(row, buffer) for every row, in pieces cut by shape; `buffer` has room for
// `buffers` rows in the widest compute type and belongs to the piece.
template <typename Body>
void for_each_row(ThreadPool& pool, int64_t rows, int64_t cols, int buffers, const Body& body) {
  const int64_t rows_a_piece = std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, cols));
  pool.for_each_piece((rows + rows_a_piece - 1) / rows_a_piece, [&](int64_t piece) {
    std::vector<double> buffer(static_cast<size_t>(buffers * cols));
    const int64_t end = std::min(rows, (piece + 1) * rows_a_piece);
    for (int64_t row = piece * rows_a_piece; row < end; ++row) body(row, buffer.data());
  });
}

}  // namespace brrr
