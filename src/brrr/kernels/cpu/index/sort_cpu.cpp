// Every element becomes an integer that orders as the element does, and its index breaks ties. That
// order is total, so any sorting algorithm gives the one stable result.
#include "brrr/kernels/cpu/index/sort_cpu.h"

#include <bit>
#include <compare>

#include "brrr/kernels/cpu/rows/rows_cpu.h"

namespace brrr::kernels {
namespace {

struct Entry {
  uint64_t key;
  int64_t index;
  auto operator<=>(const Entry&) const = default;
};

// Two's complement with the sign bit turned orders as unsigned numbers do.
uint64_t key_of(int64_t value) { return static_cast<uint64_t>(value) ^ (uint64_t{1} << 63); }

uint64_t key_of(uint64_t value) { return value; }

// Negative floats grow downwards: all their bits turn. f32 fits into f64 without rounding.
uint64_t key_of(double value) {
  if (value != value) return UINT64_MAX;                   // NaN, larger than infinity
  const auto bits = std::bit_cast<uint64_t>(value + 0.0);  // -0 + 0 is +0: they are equal
  return bits >> 63 != 0 ? ~bits : bits | uint64_t{1} << 63;
}
uint64_t key_of(float value) { return key_of(static_cast<double>(value)); }

// x, values, indices: rows along the last axis.  A piece owns whole rows.
struct RowSorter {
  Rows x, values, indices;
  uint64_t turned;  // all ones to sort downwards
  ComputeType type;

  struct Buffers {
    std::vector<double> row, sorted;  // room for any compute type
    std::vector<Entry> entries;
    std::vector<int64_t> places;
  };
  Buffers make_buffers() const {
    const auto cols = static_cast<size_t>(x.cols()), kept = static_cast<size_t>(values.cols());
    return {std::vector<double>(cols), std::vector<double>(kept), std::vector<Entry>(cols),
            std::vector<int64_t>(kept)};
  }

  template <typename T>
  void sort_row(int64_t row, Buffers& buffers) const {
    x.read(row, type, buffers.row.data());
    const auto* in = reinterpret_cast<const T*>(buffers.row.data());
    auto* out = reinterpret_cast<T*>(buffers.sorted.data());
    const int64_t kept = values.cols();
    std::vector<Entry>& entries = buffers.entries;
    for (int64_t i = 0; i < x.cols(); ++i) {
      entries[static_cast<size_t>(i)] = {key_of(in[i]) ^ turned, i};
    }
    if (kept < x.cols()) std::nth_element(entries.begin(), entries.begin() + kept, entries.end());
    std::sort(entries.begin(), entries.begin() + kept);
    for (int64_t i = 0; i < kept; ++i) {
      const int64_t place = entries[static_cast<size_t>(i)].index;
      buffers.places[static_cast<size_t>(i)] = place;
      out[i] = in[place];
    }
    values.write(row, type, out);
    indices.write(row, ComputeType::i64, buffers.places.data());
  }
};

}  // namespace

void sort_cpu(const KernelCall& call) {
  const Operand &x = call.input(0), &values = call.output(0), &indices = call.output(1);
  if (values.count() == 0) return;
  const int axis = normalize_axis(call.attrs.integer("axis"), x.shape().size(), call.op.name);
  const Layout x_rows = transpose_layout(*x.layout, axis, -1);
  const Layout value_rows = transpose_layout(*values.layout, axis, -1);
  const Layout index_rows = transpose_layout(*indices.layout, axis, -1);
  const RowSorter sorter{.x = Rows({x.base, &x_rows, x.dtype}),
                         .values = Rows({values.base, &value_rows, values.dtype}),
                         .indices = Rows({indices.base, &index_rows, indices.dtype}),
                         .turned = call.attrs.flag("descending") ? ~uint64_t{0} : 0,
                         .type = compute_type(x.dtype)};
  const int64_t rows = sorter.x.rows();
  const int64_t piece_rows = std::max<int64_t>(1, kPieceElements / sorter.x.cols());
  call.pool.for_each_piece((rows + piece_rows - 1) / piece_rows, [&](int64_t piece) {
    RowSorter::Buffers buffers = sorter.make_buffers();
    const int64_t end = std::min(rows, (piece + 1) * piece_rows);
    visit_compute(sorter.type, [&]<typename T>() {
      for (int64_t row = piece * piece_rows; row < end; ++row) sorter.sort_row<T>(row, buffers);
    });
  });
}

}  // namespace brrr::kernels
