// Arranges the products of kernels/cpu/gemm/gemm_cpu.h: converts dtypes, walks the batch and shares the work among
// threads. How it is cut is free: every element of the result has one order of operations.
#include "brrr/kernels/cpu/gemm/matmul_cpu.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/kernels/cpu/gemm/gemm_cpu.h"
#include "brrr/kernels/scalar/wrap.h"

namespace brrr::kernels {
namespace {

constexpr int64_t kPieceRows = 1024;  // enough to pay for packing its panels of B

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t whole_lines(int64_t bytes) { return divide_up(bytes, 64) * 64; }

template <typename T>
GemmKernels<T> kernels_for() {
  if constexpr (sizeof(T) == 4)
    return gemm_kernels_f32();
  else
    return gemm_kernels_f64();
}

// The product as a batch of equal problems.
struct Problem {
  int64_t m, n, k;
  Shape batch_shape;
  int64_t batch;
  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

Problem problem_of(const KernelCall& call) {
  const Shape &c = call.output(0).shape(), &a = call.input(0).shape();
  Shape batch_shape = c;
  batch_shape.resize(c.size() - 2);
  return {c[c.size() - 2], c[c.size() - 1], a[a.size() - 1], batch_shape, numel(batch_shape)};
}

// How the work is shared: each product in row_pieces x column_pieces, or small products in groups.
struct Schedule {
  int64_t panels;
  int64_t row_pieces, column_pieces;
  int64_t groups;  // parts of the batch; 0: the threads share each product
};

// Into how many pieces `panels` are cut, from `fewest` on, so that the last thread is done first: threads take turns, and
// three equal pieces take two threads as long as four would. Each stands `copies` times.
int64_t balanced_pieces(int64_t panels, int64_t fewest, int64_t most, int64_t copies, int threads) {
  const auto panels_in_turn = [&](int64_t pieces) {
    return divide_up(copies * pieces, threads) * divide_up(panels, pieces);
  };
  int64_t best = fewest;
  for (int64_t pieces = fewest + 1; pieces <= std::min({panels, most, fewest + threads});
       ++pieces) {
    if (panels_in_turn(pieces) < panels_in_turn(best)) best = pieces;
  }
  return best;
}

// Wide pieces read A seldom, tall ones pack B seldom: the largest that the caches hold, and smaller ones
// only where threads would have nothing to do. Less than 10e6 FLOPs, about 60 us on one core, are not
// worth waking a thread.
Schedule schedule(const Problem& problem, int64_t panel_columns, int threads) {
  constexpr double kPieceFlops = 10e6;
  const int64_t panels = divide_up(problem.n, panel_columns),
                wide_pieces = divide_up(panels, kMaxPiecePanels);
  const auto worth = [](double flops) {
    return std::max<int64_t>(1, static_cast<int64_t>(flops / kPieceFlops));
  };
  if (problem.batch >= 2 * threads && problem.flops() < 8 * kPieceFlops) {
    const int64_t groups = worth(problem.flops() * static_cast<double>(problem.batch));
    return {panels, 1, wide_pieces,
            std::min({groups, problem.batch, 8 * static_cast<int64_t>(threads)})};
  }
  const int64_t most = worth(problem.flops());
  const int64_t row_pieces = std::min(most, divide_up(problem.m, kPieceRows));
  const int64_t for_all_threads = divide_up(std::min<int64_t>(most, threads), row_pieces);
  const int64_t fewest = std::max(wide_pieces, std::min(panels, for_all_threads));
  return {panels, row_pieces,
          balanced_pieces(panels, fewest, most / row_pieces, problem.batch * row_pieces, threads),
          0};
}

// Matrices may have any strides; a bias, of one axis, is read in order.
bool is_in_place(const Operand& operand) {
  return is_natural(operand.dtype) &&
         (operand.layout->rank() != 1 || operand.layout->is_contiguous());
}

// An operand in the compute type: the caller's own elements, or a converted copy in scratch.
struct Prepared {
  const std::byte* base;
  Layout layout;
};

Prepared prepare(const KernelCall& call, const Operand& operand, ComputeType type,
                 std::byte*& scratch) {
  if (is_in_place(operand)) return {operand.base, *operand.layout};
  Prepared copy{scratch, contiguous_layout(operand.shape())};
  const Operand target{scratch, &copy.layout, natural_dtype(type)};
  scratch += whole_lines(operand.count() * compute_bytes(type));
  run_copy({call.op, {&operand, 1}, {&target, 1}, call.attrs, {}, call.pool});
  return copy;
}

// Where matrix `batch` of an operand starts, in elements; axes of size 1 broadcast.
int64_t matrix_start(const Layout& layout, int64_t batch, const Shape& batch_shape) {
  int64_t position = layout.offset;
  const int missing = batch_shape.size() - (layout.rank() - 2);
  for (int axis = batch_shape.size() - 1; axis >= 0; --axis) {
    const int64_t index = batch % batch_shape[axis];
    batch /= batch_shape[axis];
    if (axis >= missing && layout.shape[axis - missing] != 1)
      position += index * layout.strides[axis - missing];
  }
  return position;
}

// Everything that one call multiplies, in the compute type.
template <typename T>
struct Product {
  Problem problem;
  Prepared a, b;
  const T* bias;  // or null
  T* c;
  const TileSink* sink;  // or null
};

template <typename T>
constexpr ComputeType kComputeTypeOf = std::is_same_v<T, float>    ? ComputeType::f32
                                       : std::is_same_v<T, double> ? ComputeType::f64
                                                                   : ComputeType::i64;

template <typename T>
GemmCall<T> gemm_at(const Product<T>& product, int64_t batch) {
  const auto& [problem, a, b, bias, c, sink] = product;
  const int ra = a.layout.rank(), rb = b.layout.rank();
  return {
      .m = problem.m,
      .n = problem.n,
      .k = problem.k,
      .a = reinterpret_cast<const T*>(a.base) + matrix_start(a.layout, batch, problem.batch_shape),
      .a_row_stride = a.layout.strides[ra - 2],
      .a_col_stride = a.layout.strides[ra - 1],
      .b = reinterpret_cast<const T*>(b.base) + matrix_start(b.layout, batch, problem.batch_shape),
      .b_row_stride = b.layout.strides[rb - 2],
      .b_col_stride = b.layout.strides[rb - 1],
      .c = c + batch * problem.m * problem.n,
      .c_row_stride = problem.n,
      .bias = bias};
}

// The rows and columns of piece `index`; sizes differ by one tile or one panel at most.
template <typename T>
GemmPiece piece_at(const GemmCall<T>& call, const GemmKernels<T>& kernels, const Schedule& plan,
                   int64_t index) {
  const int64_t tiles = divide_up(call.m, kernels.tile_rows);
  const auto cut = [](int64_t total, int64_t pieces, int64_t i) { return total * i / pieces; };
  const int64_t r = index / plan.column_pieces, c = index % plan.column_pieces;
  const int64_t row = cut(tiles, plan.row_pieces, r) * kernels.tile_rows,
                row_end = std::min(call.m, cut(tiles, plan.row_pieces, r + 1) * kernels.tile_rows),
                panel = cut(plan.panels, plan.column_pieces, c),
                panel_end = cut(plan.panels, plan.column_pieces, c + 1);
  return {row, row_end - row, panel, panel_end - panel};
}

// What is fused behind the product goes over a piece while the caches have it: at once where its rows
// are whole and so lie behind one another, else row by row.
template <typename T>
void tell_sink(const TileSink& sink, const Product<T>& product, const GemmCall<T>& call,
               const GemmPiece& piece, int64_t panel_columns) {
  const int64_t column = piece.panel * panel_columns,
                columns = std::min(call.n - column, piece.panels * panel_columns);
  if (columns == call.n && call.c_row_stride == call.n) {
    const T* values = call.c + piece.row * call.n;
    return sink.write(values - product.c, piece.rows * call.n, kComputeTypeOf<T>, values);
  }
  for (int64_t row = piece.row; row < piece.row + piece.rows; ++row) {
    const T* values = call.c + row * call.c_row_stride + column;
    sink.write(values - product.c, columns, kComputeTypeOf<T>, values);
  }
}

template <typename T>
void multiply_floats(const Product<T>& product, ThreadPool& pool) {
  const Problem& problem = product.problem;
  const GemmKernels<T> kernels = kernels_for<T>();
  const Schedule plan = schedule(problem, kernels.panel_columns, pool.threads());
  const int64_t pieces = plan.row_pieces * plan.column_pieces;
  const auto multiply = [&](const GemmCall<T>& call, int64_t index) {
    const GemmPiece piece = piece_at(call, kernels, plan, index);
    kernels.multiply(call, piece);
    if (product.sink) tell_sink(*product.sink, product, call, piece, kernels.panel_columns);
  };
  if (plan.groups == 0) {
    pool.for_each_piece(problem.batch * pieces,
                        [&](int64_t i) { multiply(gemm_at(product, i / pieces), i % pieces); });
    return;
  }
  pool.for_each_piece(plan.groups, [&](int64_t g) {
    for (int64_t i = problem.batch * g / plan.groups; i < problem.batch * (g + 1) / plan.groups;
         ++i) {
      const GemmCall<T> call = gemm_at(product, i);
      for (int64_t piece = 0; piece < pieces; ++piece) multiply(call, piece);
    }
  });
}

void multiply_integers(const Product<int64_t>& product, ThreadPool& pool) {
  const int64_t m = product.problem.m;
  pool.for_each_piece(product.problem.batch * m, [&](int64_t row_of_all) {
    const GemmCall<int64_t> call = gemm_at(product, row_of_all / m);
    const int64_t row = row_of_all % m;
    int64_t* out = call.c + row * call.c_row_stride;
    for (int64_t j = 0; j < call.n; ++j) out[j] = call.bias ? call.bias[j] : 0;
    for (int64_t l = 0; l < call.k; ++l) {
      const int64_t factor = call.a[row * call.a_row_stride + l * call.a_col_stride];
      const int64_t* b_row = call.b + l * call.b_row_stride;
      for (int64_t j = 0; j < call.n; ++j)
        out[j] = add_wrapping(out[j], mul_wrapping(factor, b_row[j * call.b_col_stride]));
    }
  });
}

int64_t conversion_bytes(const Operand& operand, ComputeType type) {
  return is_in_place(operand) ? 0 : whole_lines(operand.count() * compute_bytes(type));
}

}  // namespace

int64_t matmul_workspace(const KernelCall& call) {
  const ComputeType type = compute_type(call.output(0).dtype);
  int64_t bytes = conversion_bytes(call.output(0), type);
  for (const Operand& input : call.inputs) bytes += conversion_bytes(input, type);
  return bytes;
}

namespace {

template <typename T>
void run_products(const Product<T>& product, ThreadPool& pool) {
  const Problem& problem = product.problem;
  if constexpr (!std::is_same_v<T, int64_t>) {
    if (problem.k > 0) return multiply_floats(product, pool);
  }
  const int64_t count = problem.batch * problem.m * problem.n;
  if (problem.k == 0) {  // sums of nothing
    for (int64_t i = 0; i < count; ++i)
      product.c[i] = product.bias ? product.bias[i % problem.n] : T(0);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    multiply_integers(product, pool);
  }
  if (product.sink) product.sink->write(0, count, kComputeTypeOf<T>, product.c);
}

}  // namespace

void matmul_cpu(const KernelCall& call) {
  const Operand& output = call.output(0);
  const ComputeType type = compute_type(output.dtype);
  if (output.count() == 0) return;
  std::byte* scratch = call.workspace.data();
  const bool direct = is_natural(output.dtype);
  std::byte* result = direct ? output.base + output.layout->offset * compute_bytes(type) : scratch;
  scratch += conversion_bytes(output, type);
  const Prepared a = prepare(call, call.input(0), type, scratch),
                 b = prepare(call, call.input(1), type, scratch);
  Prepared bias{};
  if (call.inputs.size() == 3) bias = prepare(call, call.input(2), type, scratch);
  visit_wrapping(type, [&]<typename T>() {
    const T* row = reinterpret_cast<const T*>(bias.base);
    run_products<T>({.problem = problem_of(call),
                     .a = a,
                     .b = b,
                     .bias = row ? row + bias.layout.offset : nullptr,
                     .c = reinterpret_cast<T*>(result),
                     .sink = output.sink},
                    call.pool);
  });
  if (direct) return;
  const Layout whole = contiguous_layout(output.shape());
  const Operand computed{result, &whole, natural_dtype(type)};
  run_copy({call.op, {&computed, 1}, call.outputs, call.attrs, {}, call.pool});
}

// As a product of two matrices where the rows of x lie evenly, else as a batch of them. The bias must
// lie in order: a strided one is read through its own copy.
void linear_cpu(const KernelCall& call) {
  const Operand &x = call.input(0), &weight = call.input(1), &output = call.output(0);
  const int64_t in = weight.shape()[1], out = weight.shape()[0],
                rows = out == 0 ? 0 : output.count() / out;
  const std::optional<Layout> tall = try_view_layout(*x.layout, {rows, in});
  const Layout a = tall ? *tall : *x.layout, b = transpose_layout(*weight.layout, 0, 1);
  Layout c = *output.layout;
  if (tall) c = {{rows, out}, {out, 1}, output.layout->offset};
  SmallVector<Operand, 3> inputs{{x.base, &a, x.dtype}, {weight.base, &b, weight.dtype}};
  if (call.inputs.size() == 3) inputs.push_back(call.input(2));
  const Operand result{output.base, &c, output.dtype, nullptr, output.sink};
  matmul_cpu({call.op, inputs, {&result, 1}, call.attrs, call.workspace, call.pool});
}

}  // namespace brrr::kernels
