// Arranges the products of ops/gemm_cpu.h: converts dtypes, walks the batch, packs B and shares the work
// among threads. How it is cut is free: every element of the result has one order of operations.
#include "brrr/ops/matmul_cpu.h"

#include <algorithm>

#include "brrr/ops/elementwise_cpu.h"
#include "brrr/ops/gemm_cpu.h"
#include "brrr/ops/wrap.h"

namespace brrr {
namespace {

constexpr int64_t kPackedBytes = int64_t{4}
                                 << 20;  // of B at a time, used while it is in the caches
constexpr int64_t kRowBlock = 128;       // rows of A that stay in the L2 cache with a panel of B
constexpr double kPieceFlops = 16e6;     // about 100 us: worth waking a thread
constexpr int64_t kMaxGroups = 64;       // of small products, each with scratch of its own

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

// How the work is shared: the threads divide each product, or they divide the batch. B is packed in
// chunks of some panels and some of k.
struct Schedule {
  bool by_product;
  int64_t panels, chunk_panels, chunk_depth;
  int64_t groups;           // parts of the batch
  int64_t packed_elements;  // scratch of one chunk
};

template <typename T>
Schedule schedule(const Problem& problem) {
  const int64_t width = kernels_for<T>().panel_columns, panels = divide_up(problem.n, width);
  const bool by_product = problem.batch < 16 || problem.flops() > 4 * kPieceFlops;
  const int64_t budget = kPackedBytes / static_cast<int64_t>(sizeof(T)) / width;  // panels x k
  // Whole depth where it leaves at least 16 panels in a chunk, else a part of it.
  int64_t depth = problem.k;
  if (by_product && depth * std::min<int64_t>(panels, 16) > budget) {
    depth = std::max<int64_t>(1, budget / std::min<int64_t>(panels, 16) / kGemmDepth) * kGemmDepth;
  }
  const int64_t chunk_panels =
      by_product ? std::clamp<int64_t>(budget / std::max<int64_t>(1, depth), 1, panels) : panels;
  int64_t groups = 1;
  if (!by_product) {
    const auto worth =
        static_cast<int64_t>(problem.flops() * static_cast<double>(problem.batch) / kPieceFlops);
    groups = std::clamp<int64_t>(worth, 1, std::min(kMaxGroups, problem.batch));
  }
  const int64_t bytes = whole_lines(chunk_panels * depth * width * static_cast<int64_t>(sizeof(T)));
  return {by_product, panels, chunk_panels, depth, groups, bytes / static_cast<int64_t>(sizeof(T))};
}

// An operand in the compute type: the caller's own elements, or a converted copy in scratch.
struct Prepared {
  const std::byte* base;
  Layout layout;
};

Prepared prepare(const KernelCall& call, const Operand& operand, ComputeType type,
                 std::byte*& scratch) {
  if (is_natural(operand.dtype)) return {operand.base, *operand.layout};
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

template <typename T>
GemmCall<T> gemm_at(const Problem& problem, const Prepared& a, const Prepared& b, T* c,
                    int64_t batch) {
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
      .c_row_stride = problem.n};
}

// A chunk of B packed by all threads, then multiplied with all of A.
template <typename T>
void multiply_chunk(const GemmCall<T>& call, const PackedB<T>& packed, ThreadPool& pool) {
  const GemmKernels<T> kernels = kernels_for<T>();
  const int64_t panel_elements = kernels.panel_columns * packed.depth();
  const int64_t pack_group = std::max<int64_t>(1, 2 * kPieceElements / panel_elements);
  pool.for_each_piece(divide_up(packed.count, pack_group), [&](int64_t piece) {
    const int64_t end = std::min(packed.count, (piece + 1) * pack_group);
    for (int64_t p = piece * pack_group; p < end; ++p)
      kernels.pack_panel(call, packed, packed.first + p);
  });
  const double panel_flops =
      2.0 * static_cast<double>(std::min(kRowBlock, call.m) * panel_elements);
  const int64_t group = std::max<int64_t>(1, static_cast<int64_t>(kPieceFlops / panel_flops));
  const int64_t groups = divide_up(packed.count, group);
  pool.for_each_piece(divide_up(call.m, kRowBlock) * groups, [&](int64_t piece) {
    const int64_t row = piece / groups * kRowBlock, p = piece % groups * group;
    kernels.multiply(call, packed, row, std::min(kRowBlock, call.m - row), packed.first + p,
                     std::min(group, packed.count - p));
  });
}

// One product, shared by all threads.
template <typename T>
void multiply_together(const GemmCall<T>& call, const Schedule& plan, T* scratch,
                       ThreadPool& pool) {
  for (int64_t first = 0; first < plan.panels; first += plan.chunk_panels) {
    for (int64_t k = 0; k < call.k; k += plan.chunk_depth) {
      const int64_t count = std::min(plan.chunk_panels, plan.panels - first);
      multiply_chunk<T>(call, {scratch, first, count, k, std::min(call.k, k + plan.chunk_depth)},
                        pool);
    }
  }
}

// One small product on one thread.
template <typename T>
void multiply_alone(const GemmCall<T>& call, const Schedule& plan, T* scratch) {
  const GemmKernels<T> kernels = kernels_for<T>();
  const PackedB<T> packed{scratch, 0, plan.panels, 0, call.k};
  for (int64_t p = 0; p < plan.panels; ++p) kernels.pack_panel(call, packed, p);
  kernels.multiply(call, packed, 0, call.m, 0, plan.panels);
}

template <typename T>
void multiply_floats(const Problem& problem, const Prepared& a, const Prepared& b, T* c,
                     std::byte* scratch, ThreadPool& pool) {
  const Schedule plan = schedule<T>(problem);
  T* packed = reinterpret_cast<T*>(scratch);
  if (plan.by_product) {
    for (int64_t i = 0; i < problem.batch; ++i)
      multiply_together(gemm_at(problem, a, b, c, i), plan, packed, pool);
    return;
  }
  pool.for_each_piece(plan.groups, [&](int64_t g) {
    const int64_t begin = problem.batch * g / plan.groups,
                  end = problem.batch * (g + 1) / plan.groups;
    for (int64_t i = begin; i < end; ++i)
      multiply_alone(gemm_at(problem, a, b, c, i), plan, packed + g * plan.packed_elements);
  });
}

void multiply_integers(const Problem& problem, const Prepared& a, const Prepared& b, int64_t* c,
                       ThreadPool& pool) {
  pool.for_each_piece(problem.batch * problem.m, [&](int64_t row_of_all) {
    const GemmCall<int64_t> call = gemm_at(problem, a, b, c, row_of_all / problem.m);
    const int64_t row = row_of_all % problem.m;
    int64_t* out = call.c + row * call.c_row_stride;
    std::fill_n(out, call.n, int64_t{0});
    for (int64_t l = 0; l < call.k; ++l) {
      const int64_t factor = call.a[row * call.a_row_stride + l * call.a_col_stride];
      const int64_t* b_row = call.b + l * call.b_row_stride;
      for (int64_t j = 0; j < call.n; ++j)
        out[j] = add_wrapping(out[j], mul_wrapping(factor, b_row[j * call.b_col_stride]));
    }
  });
}

// Scratch for converted operands comes first, packed panels behind it.
int64_t conversion_bytes(const Operand& operand, ComputeType type) {
  return is_natural(operand.dtype) ? 0 : whole_lines(operand.count() * compute_bytes(type));
}

template <typename T>
int64_t packing_bytes(const Problem& problem) {
  const Schedule plan = schedule<T>(problem);
  return plan.groups * plan.packed_elements * static_cast<int64_t>(sizeof(T));
}

}  // namespace

int64_t matmul_workspace(const KernelCall& call) {
  if (call.output(0).count() == 0) return 0;  // nothing to compute, and no panels to cut
  const ComputeType type = compute_type(call.output(0).dtype);
  int64_t bytes = conversion_bytes(call.output(0), type);
  for (const Operand& input : call.inputs) bytes += conversion_bytes(input, type);
  const Problem problem = problem_of(call);
  if (type == ComputeType::f32) bytes += packing_bytes<float>(problem);
  if (type == ComputeType::f64) bytes += packing_bytes<double>(problem);
  return bytes;
}

void matmul_cpu(const KernelCall& call) {
  const Operand& output = call.output(0);
  const ComputeType type = compute_type(output.dtype);
  const Problem problem = problem_of(call);
  if (output.count() == 0) return;
  std::byte* scratch = call.workspace.data();
  const bool direct = is_natural(output.dtype);
  std::byte* result = direct ? output.base + output.layout->offset * compute_bytes(type) : scratch;
  scratch += conversion_bytes(output, type);
  const Prepared a = prepare(call, call.input(0), type, scratch),
                 b = prepare(call, call.input(1), type, scratch);
  if (problem.k == 0) {
    std::fill_n(result, output.count() * compute_bytes(type), std::byte{0});
  } else if (type == ComputeType::f32) {
    multiply_floats(problem, a, b, reinterpret_cast<float*>(result), scratch, call.pool);
  } else if (type == ComputeType::f64) {
    multiply_floats(problem, a, b, reinterpret_cast<double*>(result), scratch, call.pool);
  } else {
    multiply_integers(problem, a, b, reinterpret_cast<int64_t*>(result), call.pool);
  }
  if (direct) return;
  const Layout whole = contiguous_layout(output.shape());
  const Operand computed{result, &whole, natural_dtype(type)};
  run_copy({call.op, {&computed, 1}, call.outputs, call.attrs, {}, call.pool});
}

}  // namespace brrr
