#include "brrr/kernels/cpu/rows/norm_cpu.h"

#include <optional>
#include <vector>

#include "brrr/kernels/cpu/rows/norm_rows.h"
#include "brrr/kernels/cpu/rows/rows_cpu.h"

namespace brrr::kernels {
namespace {

// A vector of weights in the compute type: the storage itself, or a copy.
class Weights {
 public:
  Weights(const Operand& operand, ComputeType type) {
    const Rows row(operand);
    if (!row.is_direct(type)) copy_.resize(static_cast<size_t>(row.cols()));
    data_ = row.view(0, type, copy_.data());
  }
  const void* data() const { return data_; }

 private:
  std::vector<double> copy_;
  const void* data_;
};

// Statistics are contiguous results of one number a row.
void write_statistic(const Operand& output, int64_t row, double value) {
  store_elements(ComputeType::f64, &value, output.dtype, output.base, output.layout->offset + row,
                 1, 1);
}

std::vector<double> read_statistics(const Operand& operand, int64_t rows) {
  std::vector<double> values(static_cast<size_t>(rows));
  const LoopNest nest = [&] {
    const Layout* layout = operand.layout;
    return make_nest(layout->shape, {&layout, 1});
  }();
  double* out = values.data();
  for_each_run(nest, 0, 0, rows, [&](int64_t position, int64_t run, int64_t stride) {
    load_elements(operand.dtype, operand.base, operand.layout->offset + position, stride, run,
                  ComputeType::f64, out);
    out += run;
  });
  return values;
}

// Few enough rows that f32 adds them well, many enough that blocks are few, and at least a piece.
int64_t rows_a_block(int64_t rows, int64_t cols) {
  const int64_t a_piece = kPieceElements / std::max<int64_t>(1, cols);
  return std::clamp<int64_t>(std::max((rows + 31) / 32, a_piece), 1, 256);
}

int64_t blocks_of(int64_t rows, int64_t cols) {
  const int64_t block = rows_a_block(rows, cols);
  return (rows + block - 1) / block;
}

// The operands of a backward call by name; the two norms have them at different places.
struct Backward {
  Norm norm;
  ComputeType type;
  Rows x, dy, dx;
  Weights weight;
  std::vector<double> centers, scales;  // of every row; no centers: 0
  int sums;                             // of columns: dweight and, for layer, dbias
  DType dtype;                          // of dx
  std::optional<Rows> addend;           // what is added to dx behind its rounding

  NormStatistics statistics(int64_t row) const {
    const auto r = static_cast<size_t>(row);
    return {centers.empty() ? 0 : centers[r], scales[r]};
  }
};

Backward backward_of(const KernelCall& call, Norm norm) {
  const bool layer = norm == Norm::layer;
  const ComputeType type = compute_type(call.output(0).dtype);
  const Rows x(call.input(0));
  return {.norm = norm,
          .type = type,
          .x = x,
          .dy = Rows(call.input(layer ? 4 : 3)),
          .dx = Rows(call.output(0)),
          .weight = Weights(call.input(1), type),
          .centers = layer ? read_statistics(call.input(2), x.rows()) : std::vector<double>(),
          .scales = read_statistics(call.input(layer ? 3 : 2), x.rows()),
          .sums = layer ? 2 : 1,
          .dtype = call.output(0).dtype,
          .addend = call.inputs.size() > (layer ? 5U : 4U) ? std::optional(Rows(call.inputs.back()))
                                                           : std::nullopt};
}

// Rows of scratch of a block: x, dy, dx, and for the addition what is added and what is rounded.
int64_t scratch_rows(const Backward& b) { return b.addend ? 5 : 3; }

// dx as it is stored, + the addend. `scratch` has two rows.
void add_addend(const Rows& addend, const Backward& b, int64_t row, void* dx, double* scratch) {
  const int64_t cols = b.x.cols();
  if (b.dtype != natural_dtype(b.type)) {
    auto* const rounded = reinterpret_cast<std::byte*>(scratch + cols);
    store_elements(b.type, dx, b.dtype, rounded, 0, 1, cols);
    load_elements(b.dtype, rounded, 0, 1, cols, b.type, dx);
  }
  const void* const added = addend.view(row, b.type, scratch);
  visit_compute(b.type, [&]<typename T>() {
    for (int64_t i = 0; i < cols; ++i) static_cast<T*>(dx)[i] += static_cast<const T*>(added)[i];
  });
}

// Adds up rows [begin, end) into `sums`: dweight, then dbias, in the compute type.
void run_block(const Backward& b, int64_t begin, int64_t end, std::byte* sums, double* buffer) {
  const NormRows kernels = find_norm_rows(b.type);
  const auto kernel =
      b.norm == Norm::layer ? kernels.layer_norm_backward : kernels.rms_norm_backward;
  const int64_t cols = b.x.cols();
  std::fill_n(sums, b.sums * cols * compute_bytes(b.type), std::byte{0});
  for (int64_t row = begin; row < end; ++row) {
    void* out = b.dx.target(row, b.type, buffer + 2 * cols);
    kernel({.x = b.x.view(row, b.type, buffer),
            .dy = b.dy.view(row, b.type, buffer + cols),
            .weight = b.weight.data(),
            .dx = out,
            .weight_sums = sums,
            .bias_sums = sums + cols * compute_bytes(b.type),
            .count = cols,
            .statistics = b.statistics(row),
            .store = b.addend ? RowStore::cached : b.dx.store(b.type)});
    if (b.addend) add_addend(*b.addend, b, row, out, buffer + 3 * cols);
    b.dx.deliver(row, b.type, out);
  }
  finish_stream();
}

}  // namespace

void run_norm(const KernelCall& call, Norm norm) {
  const Rows x(call.input(0)), y(call.output(0));
  const ComputeType type = compute_type(call.output(0).dtype);
  const bool layer = norm == Norm::layer;
  const Weights weight(call.input(1), type), bias(call.input(layer ? 2 : 1), type);
  const NormRows kernels = find_norm_rows(type);
  const auto kernel = layer ? kernels.layer_norm : kernels.rms_norm;
  const int64_t cols = x.cols();
  const bool in_place = x.is_direct(type) && y.is_direct(type);
  for_each_row(call.pool, x.rows(), cols, in_place ? 0 : 2, [&](int64_t row, double* buffer) {
    void* out = y.target(row, type, buffer + cols);
    const NormStatistics statistics = kernel({.x = x.view(row, type, buffer),
                                              .weight = weight.data(),
                                              .bias = bias.data(),
                                              .y = out,
                                              .count = cols,
                                              .eps = call.attrs.number("eps"),
                                              .store = y.store(type)});
    y.deliver(row, type, out);
    if (layer) write_statistic(call.output(1), row, statistics.center);
    write_statistic(call.output(layer ? 2 : 1), row, statistics.scale);
  });
}

int64_t norm_backward_workspace(const KernelCall& call) {
  const Shape& shape = call.input(0).shape();
  const int64_t cols = shape.back(), rows = cols == 0 ? 0 : numel(shape) / cols;
  return blocks_of(rows, cols) * 2 * cols * 8;
}

void run_norm_backward(const KernelCall& call, Norm norm) {
  const Backward b = backward_of(call, norm);
  const int64_t rows = b.x.rows(), cols = b.x.cols();
  if (cols == 0) return;
  const int64_t block = rows_a_block(rows, cols), blocks = blocks_of(rows, cols);
  const int64_t sums_bytes = b.sums * cols * compute_bytes(b.type);
  const bool in_place =
      b.x.is_direct(b.type) && b.dy.is_direct(b.type) && b.dx.is_direct(b.type) && !b.addend;
  if (blocks > 0) {
    call.pool.for_each_piece(blocks, [&](int64_t i) {
      const auto buffer = std::make_unique_for_overwrite<double[]>(
          static_cast<size_t>(in_place ? 1 : scratch_rows(b) * cols));
      run_block(b, i * block, std::min(rows, (i + 1) * block),
                call.workspace.data() + i * sums_bytes, buffer.get());
    });
  }
  const NormRows kernels = find_norm_rows(b.type);
  std::vector<double> totals(static_cast<size_t>(b.sums * cols), 0.0);
  for (int64_t i = 0; i < blocks; ++i)
    kernels.add_part(totals.data(), call.workspace.data() + i * sums_bytes, b.sums * cols);
  for (int i = 0; i < b.sums; ++i) {
    const Operand& output = call.output(1 + i);
    store_elements(ComputeType::f64, totals.data() + i * cols, output.dtype, output.base,
                   output.layout->offset, 1, cols);
  }
}

}  // namespace brrr::kernels
