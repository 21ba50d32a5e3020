// The gradient of an embedding's table without atomics: ids are sorted with their places, and each row is summed in
// the order of its ids. dy: [ids, dim], y: [rows, dim].
//
// A thread has four columns of a row. Rows that many ids name would keep a few threads busy long after all others, so
// rows of more than kPiece ids are summed in pieces: places [p kPiece, (p + 1) kPiece) of the sorted ids are piece p,
// whoever they belong to. Only the first and the last row of a piece can be so long; their sums of the piece go to
// slots 2 p and 2 p + 1, and the slots of a row are added in order.
#include "brrr/kernels/cuda/index/index_cuda.h"
#include "brrr/kernels/cuda/index/sort_pairs.cuh"

namespace brrr::kernels {
namespace {

struct MakeIdKeys {
  Elements ids;
  Walk walk;
  uint32_t *keys, *places;
  int64_t rows;
  cuda::FaultNote note;
  __device__ void operator()(int64_t i) const {
    const auto id = ids.load<int64_t>(walk.position(i));
    // A bad id sorts behind every row, where nobody reads it.
    keys[i] = static_cast<uint32_t>(note.accepts(id, rows) ? id : rows);
    places[i] = static_cast<uint32_t>(i);
  }
};

// starts[r] = the first place in the sorted keys that is not below r, for r in [0, rows].
struct FindStarts {
  const uint32_t* keys;
  uint32_t* starts;
  int64_t count, rows;
  __device__ void operator()(int64_t i) const {  // i in [0, count]: rows between two neighbours
    const int64_t from = i == 0 ? 0 : int64_t{keys[i - 1]} + 1, to = i == count ? rows : keys[i];
    for (int64_t row = from; row <= min(to, rows); ++row) starts[row] = static_cast<uint32_t>(i);
  }
};

struct TableRows {
  const uint32_t *keys, *starts, *places;  // keys and places in the order of keys
  Elements dy;
  Walk dy_rows;
  int64_t dy_pitch;             // of rows, where they have one
  uint32_t count, rows, quads;  // quads of columns
};

// ---- Four columns a thread.

constexpr uint32_t kPiece = EmbeddingGradMemory::kPiece;
template <typename T>
using Quad = std::conditional_t<sizeof(T) == 2, uint2, uint4>;

// sums += the rows of dy at places [first, last), in order; the loads of `Together` rows are under way at once.
template <typename T, int Together>
__device__ void sum_places(const TableRows& call, uint32_t first, uint32_t last, uint32_t quad,
                           float (&sums)[4]) {
  const T* const columns = reinterpret_cast<const T*>(call.dy.base) + 4 * quad;
  const auto load = [&](uint32_t i) {
    return *reinterpret_cast<const Quad<T>*>(columns + call.places[i] * call.dy_pitch);
  };
  const auto add = [&](const Quad<T>& words) {
    const T* const values = reinterpret_cast<const T*>(&words);
#pragma unroll
    for (int c = 0; c < 4; ++c) sums[c] += convert_fast<float>(values[c]);
  };
  uint32_t i = first;
  for (; i + Together <= last; i += Together) {
    Quad<T> words[Together];
#pragma unroll
    for (int k = 0; k < Together; ++k) words[k] = load(i + k);
#pragma unroll
    for (int k = 0; k < Together; ++k) add(words[k]);
  }
  for (; i < last; ++i) add(load(i));
}

template <typename Y>
__device__ void store_quad(Y* y, const float (&sums)[4]) {
  Quad<Y> words;
#pragma unroll
  for (int c = 0; c < 4; ++c) reinterpret_cast<Y*>(&words)[c] = convert_fast<Y>(sums[c]);
  *reinterpret_cast<Quad<Y>*>(y) = words;
}

template <typename T, typename Y>
struct SumShortRows {
  TableRows call;
  Y* y;
  __device__ void operator()(int64_t i) const {
    const auto row = static_cast<uint32_t>(i <= UINT32_MAX ? static_cast<uint32_t>(i) / call.quads
                                                           : i / call.quads);
    const uint32_t begin = call.starts[row], end = call.starts[row + 1];
    if (end - begin > kPiece) return;
    float sums[4] = {};
    const auto quad = static_cast<uint32_t>(i - int64_t{row} * call.quads);
    sum_places<T, 4>(call, begin, end, quad, sums);
    store_quad(y + 4 * i, sums);
  }
};

// Calls visit(row, begin, end, slot) for the long rows of this block's piece: that of its first place, and that of its
// last one where it begins behind the first. Ids that are bad, and sorted behind all, have no row.
template <typename Visit>
__device__ void for_each_long_row(const TableRows& call, const Visit& visit) {
  const uint32_t piece = blockIdx.x, first = piece * kPiece,
                 last = min(call.count, first + kPiece) - 1;
  for (uint32_t k = 0; k < 2; ++k) {
    const uint32_t row = call.keys[k == 0 ? first : last];
    if (row >= call.rows) continue;
    const uint32_t begin = call.starts[row], end = call.starts[row + 1];
    if (end - begin > kPiece && (k == 0 || begin > first)) visit(row, begin, end, 2 * piece + k);
  }
}

constexpr uint32_t kPieceThreads = 192;
template <typename T>
__global__ void __launch_bounds__(kPieceThreads) sum_pieces_kernel(TableRows call, float4* slots) {
  const uint32_t first = blockIdx.x * kPiece;
  for_each_long_row(call, [&](uint32_t, uint32_t begin, uint32_t end, int64_t slot) {
    for (uint32_t quad = threadIdx.x; quad < call.quads; quad += kPieceThreads) {
      float sums[4] = {};
      sum_places<T, 16>(call, max(begin, first), min(end, first + kPiece), quad, sums);
      slots[slot * call.quads + quad] = {sums[0], sums[1], sums[2], sums[3]};
    }
  });
}

// The block of the piece that a long row begins in has it: further pieces of it are in their slot of a first row.
template <typename Y>
__global__ void __launch_bounds__(kPieceThreads)
    join_pieces_kernel(TableRows call, const float4* slots, Y* y) {
  const uint32_t piece = blockIdx.x;
  for_each_long_row(call, [&](int64_t row, uint32_t begin, uint32_t end, int64_t slot) {
    if (begin < piece * kPiece) return;
    const uint32_t last_piece = (end - 1) / kPiece;
    for (uint32_t quad = threadIdx.x; quad < call.quads; quad += kPieceThreads) {
      const float4 start = slots[slot * call.quads + quad];
      float sums[4] = {start.x, start.y, start.z, start.w};
#pragma unroll 8  // loads under way at once; the order of additions stays
      for (uint32_t p = piece + 1; p <= last_piece; ++p) {
        const float4 more = slots[int64_t{2} * p * call.quads + quad];
        sums[0] += more.x, sums[1] += more.y, sums[2] += more.z, sums[3] += more.w;
      }
      store_quad(y + (row * call.quads + quad) * 4, sums);
    }
  });
}

// ---- Rows of any dtype and layout. A block has a row and kColumns columns; its kParts parts sum a share of the row's
// ids each, in order, and the shares are added in order.

constexpr int kParts = 8, kColumns = 32;
template <typename C>
__global__ void __launch_bounds__(kColumns* kParts)
    sum_plain_rows_kernel(TableRows call, int64_t dy_step, Elements y, int64_t dim) {
  __shared__ C parts[kParts][kColumns];
  const int64_t row = blockIdx.x, col = static_cast<int64_t>(blockIdx.y) * kColumns + threadIdx.x;
  const int64_t begin = call.starts[row], end = call.starts[row + 1];
  const int64_t part = (end - begin + kParts - 1) / kParts, first = begin + threadIdx.y * part,
                last = min(end, first + part);
  C sum = 0;
  if (col < dim) {
#pragma unroll 4
    for (int64_t i = first; i < last; ++i)
      sum =
          add_wrapping(sum, call.dy.load<C>(call.dy_rows.position(call.places[i]) + col * dy_step));
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || col >= dim) return;
  for (int p = 1; p < kParts; ++p) sum = add_wrapping(sum, parts[p][threadIdx.x]);
  y.store<C>(row * dim + col, sum);
}

// ---- Launches.

// Whether rows are whole quads of f32, bf16 or f16, at addresses where they can be moved at once.
bool has_quads(const Operand& x) {
  if (x.dtype != DType::f32 && x.dtype != DType::bf16 && x.dtype != DType::f16) return false;
  const auto quad_bytes = static_cast<uintptr_t>(bit_size(x.dtype) / 8 * 4);
  bool whole = x.layout->strides.back() == 1 && x.shape().back() % 4 == 0 &&
               reinterpret_cast<uintptr_t>(Elements(x).base) % quad_bytes == 0;
  for (int axis = 0; axis + 1 < x.layout->rank(); ++axis)
    whole = whole && x.layout->strides[axis] % 4 == 0;
  return whole;
}

EmbeddingGradMemory memory_of(const CudaCall& call) {
  return {call.input(1).count(), call.output(0).shape()[0], call.output(0).shape()[1]};
}

template <typename T, typename Y>
void sum_quads(const CudaCall& call, const TableRows& rows, float4* slots) {
  Y* const y = Elements(call.output(0)).as<Y>();
  const auto pieces = static_cast<unsigned>(EmbeddingGradMemory::pieces(rows.count));
  launch_for_each(call, int64_t{rows.rows} * rows.quads, SumShortRows<T, Y>{rows, y});
  sum_pieces_kernel<T><<<pieces, kPieceThreads, 0, call.stream>>>(rows, slots);
  cuda::check_launch(call.op.name);
  join_pieces_kernel<Y><<<pieces, kPieceThreads, 0, call.stream>>>(rows, slots, y);
  cuda::check_launch(call.op.name);
}

// False where rows have no quads, or dy's have no one pitch.
bool run_quads(const CudaCall& call, const TableRows& rows, float4* slots) {
  const DType from = call.input(0).dtype, to = call.output(0).dtype;
  if (!has_quads(call.input(0)) || !has_quads(call.output(0)) || rows.dy_rows.rank > 1)
    return false;
  if (from == DType::f32 && to == DType::f32)
    return sum_quads<float, float>(call, rows, slots), true;
  if (from == DType::bf16 && to == DType::bf16)
    return sum_quads<bf16, bf16>(call, rows, slots), true;
  if (from == DType::bf16 && to == DType::f32)
    return sum_quads<bf16, float>(call, rows, slots), true;
  if (from == DType::f16 && to == DType::f16) return sum_quads<f16, f16>(call, rows, slots), true;
  if (from == DType::f16 && to == DType::f32) return sum_quads<f16, float>(call, rows, slots), true;
  return false;
}

}  // namespace

void embedding_grad_cuda(const CudaCall& call) {
  const Operand &dy = call.input(0), &ids = call.input(1), &y = call.output(0);
  if (y.count() == 0) return;
  const int64_t count = ids.count(), rows = y.shape()[0], dim = y.shape()[1];
  if (count == 0) {
    return cuda::fill_zero(Elements(y).base, static_cast<size_t>(storage_bytes(y.dtype, y.count())),
                           call.stream);
  }
  require_countable(call, std::max(count, rows));
  const EmbeddingGradMemory memory = memory_of(call);
  std::byte* const base = call.workspace.data();
  const SortBuffers<uint32_t> buffers(base, count);
  launch_for_each(call, count,
                  MakeIdKeys{Elements(ids), walk_of(*ids.layout), buffers.keys, buffers.places,
                             rows, fault_note(call)});
  auto* const starts = reinterpret_cast<uint32_t*>(base + memory.pairs);
  auto* const slots = reinterpret_cast<float4*>(base + memory.pairs + memory.starts);
  sort_pairs(call, base + memory.pairs + memory.starts + memory.slots, memory.sorting, buffers,
             count, bits_below(rows + 1));
  launch_for_each(call, count + 1, FindStarts{buffers.sorted_keys, starts, count, rows});
  const Layout first_column = select_layout(*dy.layout, -1, 0);
  const Walk dy_rows = walk_of(Layout{first_column.shape, first_column.strides, 0});
  const TableRows table{.keys = buffers.sorted_keys,
                        .starts = starts,
                        .places = buffers.sorted_places,
                        .dy = Elements(dy),
                        .dy_rows = dy_rows,
                        .dy_pitch = dy_rows.rank == 0 ? 0 : dy_rows.strides[0],
                        .count = static_cast<uint32_t>(count),
                        .rows = static_cast<uint32_t>(rows),
                        .quads = static_cast<uint32_t>(dim / 4)};
  if (run_quads(call, table, slots)) return;
  const dim3 grid(static_cast<unsigned>(rows),
                  static_cast<unsigned>((dim + kColumns - 1) / kColumns));
  visit_wrapping(compute_type(dy.dtype), [&]<typename C>() {
    sum_plain_rows_kernel<C><<<grid, dim3(kColumns, kParts), 0, call.stream>>>(
        table, dy.layout->strides.back(), Elements(y), dim);
  });
  cuda::check_launch(call.op.name);
}

}  // namespace brrr::kernels
