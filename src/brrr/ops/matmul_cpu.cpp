#include "brrr/ops/matmul_cpu.h"

#include <cblas.h>

#include <algorithm>

#include "brrr/ops/elementwise_cpu.h"
#include "brrr/ops/wrap.h"

namespace brrr {
namespace {

// A matrix as BLAS wants it: `transposed` says that columns, not rows, are contiguous.
struct Matrix {
  const std::byte* data;
  int64_t leading;
  bool transposed;
};

// Strides of the last two axes of a layout; the stride of a single row or column is free to choose.
struct MatrixStrides {
  int64_t row, col;
};
MatrixStrides strides_of(const Layout& layout) {
  const int last = layout.rank() - 1;
  const int64_t rows = layout.shape[last - 1], cols = layout.shape[last];
  int64_t row = layout.strides[last - 1], col = layout.strides[last];
  if (cols == 1) col = 1;
  if (rows == 1) row = std::max(cols, col * cols);
  return {row, col};
}

bool rows_contiguous(const Layout& layout) {
  const MatrixStrides s = strides_of(layout);
  return s.col == 1 && s.row >= std::max<int64_t>(1, layout.shape[layout.rank() - 1]);
}

bool cols_contiguous(const Layout& layout) {
  const MatrixStrides s = strides_of(layout);
  return s.row == 1 && s.col >= std::max<int64_t>(1, layout.shape[layout.rank() - 2]);
}

// BLAS reads compute types with one unit stride; anything else is converted into scratch first.
bool needs_copy(const Operand& operand) {
  return !is_natural(operand.dtype) ||
         !(rows_contiguous(*operand.layout) || cols_contiguous(*operand.layout));
}

// Scratch regions start at whole cache lines.
int64_t scratch_bytes(const Operand& operand, ComputeType type) {
  return (operand.count() * compute_bytes(type) + 63) / 64 * 64;
}

// An operand that BLAS can read: the caller's own elements, or a copy in scratch.
struct Prepared {
  const std::byte* base;
  Layout layout;
};

Prepared prepare(const KernelCall& call, const Operand& operand, ComputeType type,
                 std::byte*& scratch) {
  if (!needs_copy(operand)) return {operand.base, *operand.layout};
  Prepared copy{scratch, contiguous_layout(operand.shape())};
  const Operand target{scratch, &copy.layout, natural_dtype(type)};
  scratch += scratch_bytes(operand, type);
  run_copy({call.op, {&operand, 1}, {&target, 1}, call.attrs, {}, call.pool});
  return copy;
}

Matrix matrix_at(const Prepared& prepared, int64_t batch, const Shape& batch_shape,
                 ComputeType type) {
  const Layout& layout = prepared.layout;
  int64_t position = layout.offset;
  const int batch_rank = layout.rank() - 2, missing = batch_shape.size() - batch_rank;
  for (int axis = batch_shape.size() - 1; axis >= 0; --axis) {
    const int64_t index = batch % batch_shape[axis];
    batch /= batch_shape[axis];
    if (axis >= missing && layout.shape[axis - missing] != 1)
      position += index * layout.strides[axis - missing];
  }
  const MatrixStrides s = strides_of(layout);
  const bool transposed = !rows_contiguous(layout);
  return {prepared.base + position * compute_bytes(type), transposed ? s.col : s.row, transposed};
}

struct Sizes {
  int64_t m, n, k;
};

// A slab of the result: rows [m0, m0 + m) and columns [n0, n0 + n).
struct Slab {
  int64_t m0, n0, m, n;
};

template <typename T>
const T* shifted(const Matrix& matrix, int64_t row, int64_t col) {
  const T* data = reinterpret_cast<const T*>(matrix.data);
  return matrix.transposed ? data + col * matrix.leading + row : data + row * matrix.leading + col;
}

template <typename T>
void multiply_slab(const Matrix& a, const Matrix& b, std::byte* out, const Sizes& size,
                   const Slab& slab) {
  T* c = reinterpret_cast<T*>(out) + slab.m0 * size.n + slab.n0;
  const T *pa = shifted<T>(a, slab.m0, 0), *pb = shifted<T>(b, 0, slab.n0);
  const auto ta = a.transposed ? CblasTrans : CblasNoTrans,
             tb = b.transposed ? CblasTrans : CblasNoTrans;
  const auto m = static_cast<blasint>(slab.m), n = static_cast<blasint>(slab.n),
             k = static_cast<blasint>(size.k);
  const auto lda = static_cast<blasint>(a.leading), ldb = static_cast<blasint>(b.leading),
             ldc = static_cast<blasint>(size.n);
  if constexpr (std::same_as<T, float>) {
    cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1.0F, pa, lda, pb, ldb, 0.0F, c, ldc);
  } else if constexpr (std::same_as<T, double>) {
    cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1.0, pa, lda, pb, ldb, 0.0, c, ldc);
  } else {
    for (int64_t i = 0; i < slab.m; ++i) {
      std::fill_n(c + i * size.n, slab.n, T(0));
      for (int64_t l = 0; l < size.k; ++l) {
        const T factor = *shifted<T>(a, slab.m0 + i, l);
        for (int64_t j = 0; j < slab.n; ++j) {
          c[i * size.n + j] =
              add_wrapping(c[i * size.n + j], mul_wrapping(factor, *shifted<T>(b, l, slab.n0 + j)));
        }
      }
    }
  }
}

// How many slabs a product is cut into: by its shape alone. A slab must be worth waking a thread
// (8 MFLOP, some 100 us) and thick enough (128) that repacking the other operand does not show.
struct Cut {
  int64_t slabs, size;
  bool along_rows;
};
Cut cut_product(const Sizes& size) {
  const bool along_rows = size.m >= size.n;
  const int64_t length = along_rows ? size.m : size.n;
  const double flops =
      2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
  const auto by_work = static_cast<int64_t>(flops / 8e6);
  const int64_t slabs = std::clamp<int64_t>(std::min(by_work, length / 128), 1, 64);
  const int64_t thickness = ((length + slabs - 1) / slabs + 15) / 16 * 16;
  return {(length + thickness - 1) / thickness, thickness, along_rows};
}

Slab slab_at(const Cut& cut, const Sizes& size, int64_t i) {
  const int64_t first = i * cut.size;
  if (cut.along_rows) return {first, 0, std::min(cut.size, size.m - first), size.n};
  return {0, first, size.m, std::min(cut.size, size.n - first)};
}

// Small products are grouped, so that a batch of tiny matrices does not pay for threads.
int64_t products_a_piece(const Sizes& size, const Cut& cut) {
  if (cut.slabs > 1) return 1;
  const double flops =
      2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
  return std::max<int64_t>(1, static_cast<int64_t>(4e6 / std::max(flops, 1.0)));
}

void use_one_blas_thread() {
  [[maybe_unused]] static const bool once = [] {
    openblas_set_num_threads(
        1);  // BLAS must not start threads beside ours, nor cut by their number
    return true;
  }();
}

}  // namespace

int64_t matmul_workspace(const KernelCall& call) {
  const ComputeType type = compute_type(call.output(0).dtype);
  int64_t bytes = is_natural(call.output(0).dtype) ? 0 : scratch_bytes(call.output(0), type);
  for (const Operand& input : call.inputs)
    bytes += needs_copy(input) ? scratch_bytes(input, type) : 0;
  return bytes;
}

void matmul_cpu(const KernelCall& call) {
  use_one_blas_thread();
  const Operand& output = call.output(0);
  const ComputeType type = compute_type(output.dtype);
  const int rank = output.layout->rank();
  const Sizes size{output.shape()[rank - 2], output.shape()[rank - 1],
                   call.input(0).shape()[call.input(0).layout->rank() - 1]};
  Shape batch_shape = output.shape();
  batch_shape.resize(rank - 2);
  if (output.count() == 0) return;

  std::byte* scratch = call.workspace.data();
  const bool direct = is_natural(output.dtype);
  std::byte* result = direct ? output.base + output.layout->offset * compute_bytes(type) : scratch;
  if (!direct) scratch += scratch_bytes(output, type);
  const Prepared a = prepare(call, call.input(0), type, scratch);
  const Prepared b = prepare(call, call.input(1), type, scratch);

  const Cut cut = cut_product(size);
  const int64_t products = numel(batch_shape) * cut.slabs, group = products_a_piece(size, cut);
  call.pool.for_each_piece((products + group - 1) / group, [&](int64_t piece) {
    for (int64_t i = piece * group; i < std::min(products, (piece + 1) * group); ++i) {
      const int64_t batch = i / cut.slabs;
      std::byte* out = result + batch * size.m * size.n * compute_bytes(type);
      const Slab slab = slab_at(cut, size, i % cut.slabs);
      visit_compute(type, [&]<typename T>() {
        if (size.k == 0)
          return static_cast<void>(std::fill_n(reinterpret_cast<T*>(out), size.m * size.n, T(0)));
        multiply_slab<T>(matrix_at(a, batch, batch_shape, type),
                         matrix_at(b, batch, batch_shape, type), out, size, slab);
      });
    }
  });
  if (direct) return;
  const Layout whole = contiguous_layout(output.shape());
  const Operand computed{result, &whole, natural_dtype(type)};
  run_copy({call.op, {&computed, 1}, call.outputs, call.attrs, {}, call.pool});
}

}  // namespace brrr
