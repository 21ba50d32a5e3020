// Rows along the last axis. A team of threads has a row at a time: a warp where the row fits its registers, a
// block elsewhere. A row that lies in order, at whole 16-byte chunks, is read once, 16 bytes a thread, and kept
// in registers (CachedRow); any other is read element by element as often as it is asked for (PlainRow).
// Kernels are written once, against any of these.
#pragma once

#include <limits>
#include <type_traits>

#include "brrr/ops/elements.cuh"

namespace brrr {

// NaN wins, as in max().
template <typename C>
__device__ C larger(C a, C b) {
  return b > a || b != b ? b : a;
}

// ---- Teams: sums and maxima are the same in all threads, and have one order.

constexpr int kTeamBlockThreads = 128;  // of a block of warps that work alone

struct WarpTeam {
  static __device__ int rank() { return threadIdx.x % 32; }
  static __device__ int size() { return 32; }
  // Which of all teams this is, and how many there are.
  static __device__ int64_t index() {
    return static_cast<int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  }
  static __device__ int64_t count() { return static_cast<int64_t>(gridDim.x) * (blockDim.x / 32); }

  template <typename C>
  static __device__ C sum(C value) {
    for (int distance = 16; distance > 0; distance /= 2)
      value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
  }
  template <typename C>
  static __device__ C max(C value) {
    for (int distance = 16; distance > 0; distance /= 2)
      value = larger(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
  }
};

struct BlockTeam {
  static __device__ int rank() { return static_cast<int>(threadIdx.x); }
  static __device__ int size() { return static_cast<int>(blockDim.x); }
  static __device__ int64_t index() { return blockIdx.x; }
  static __device__ int64_t count() { return gridDim.x; }

  // Warps combine in order.
  template <typename C, typename Combine>
  static __device__ C combine(C of_warp, const Combine& combine_two) {
    __shared__ C parts[32];
    __syncthreads();  // the last use of parts is over
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = of_warp;
    __syncthreads();
    C all = parts[0];
    const int warps = static_cast<int>(blockDim.x + 31) / 32;
    for (int warp = 1; warp < warps; ++warp) all = combine_two(all, parts[warp]);
    return all;
  }
  template <typename C>
  static __device__ C sum(C value) {
    return combine(WarpTeam::sum(value), [](C a, C b) { return a + b; });
  }
  template <typename C>
  static __device__ C max(C value) {
    return combine(WarpTeam::max(value), [](C a, C b) { return larger(a, b); });
  }
};

// ---- Rows.

// An operand as rows of `cols` elements.
struct RowsOf {
  Elements data;
  Walk rows;
  int64_t stride;  // along the row

  explicit RowsOf(const Operand& x) : data(x), rows{}, stride(1) {
    Layout outer = *x.layout;
    stride = outer.strides.back();
    outer.shape.pop_back();
    outer.strides.pop_back();
    rows = walk_of(outer);
  }
};

template <typename T>
inline constexpr int kChunk = 16 / static_cast<int>(sizeof(T));  // elements of 16 bytes

// Chunks rank, rank + size, ... of a row; `Steps` of them at most.
template <typename T, typename C, int Steps, typename TeamType>
struct CachedRow {
  static constexpr bool kCached = true;
  static constexpr int kPlaces = Steps * kChunk<T>;
  using Value = C;
  using Team = TeamType;
  C values[kPlaces];
  int chunks;

  __device__ CachedRow(const RowsOf& x, int64_t row, int64_t cols)
      : chunks(static_cast<int>(cols / kChunk<T>)) {
    const uint4* const from = reinterpret_cast<const uint4*>(
        reinterpret_cast<const T*>(x.data.base) + x.rows.position(row));
    uint4 loaded[Steps];  // all on their way before the first is needed
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      const int chunk = s * Team::size() + Team::rank();
      if (chunk < chunks) loaded[s] = from[chunk];
    }
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      const T* const elements = reinterpret_cast<const T*>(&loaded[s]);
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i) values[s * kChunk<T> + i] = convert_fast<C>(elements[i]);
    }
  }

  // visit(column, place) for the columns of this thread.
  template <typename Visit>
  static __device__ void for_each_column(int64_t cols, const Visit& visit) {
    const int all_chunks = static_cast<int>(cols / kChunk<T>);
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      const int chunk = s * Team::size() + Team::rank();
      if (chunk >= all_chunks) continue;
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i) visit(chunk * kChunk<T> + i, s * kChunk<T> + i);
    }
  }

  // visit(value, column, place): place is a number below kPlaces that is known at compile time.
  template <typename Visit>
  __device__ void for_each(const Visit& visit) {
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      const int chunk = s * Team::size() + Team::rank();
      if (chunk >= chunks) continue;
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i)
        visit(values[s * kChunk<T> + i], chunk * kChunk<T> + i, s * kChunk<T> + i);
    }
  }

  // y[column] = result(value, column, place)
  template <typename Result>
  __device__ void store(const RowsOf& y, int64_t row, const Result& result) {
    uint4* const to =
        reinterpret_cast<uint4*>(reinterpret_cast<T*>(y.data.base) + y.rows.position(row));
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      const int chunk = s * Team::size() + Team::rank();
      if (chunk >= chunks) continue;
      uint4 stored;
      T* const elements = reinterpret_cast<T*>(&stored);
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i)
        elements[i] = convert_fast<T>(
            result(values[s * kChunk<T> + i], chunk * kChunk<T> + i, s * kChunk<T> + i));
      to[chunk] = stored;
    }
  }
};

template <typename C>
struct PlainRow {
  static constexpr bool kCached = false;
  static constexpr int kPlaces = 1;
  using Value = C;
  using Team = BlockTeam;
  RowsOf x;
  int64_t start, cols;

  __device__ PlainRow(const RowsOf& operand, int64_t row, int64_t count)
      : x(operand), start(operand.rows.position(row)), cols(count) {}
  template <typename Visit>
  __device__ void for_each(const Visit& visit) {
    for (int64_t col = threadIdx.x; col < cols; col += blockDim.x) {
      C value = x.data.load<C>(start + col * x.stride);
      visit(value, static_cast<int>(col), 0);
    }
  }
  template <typename Result>
  __device__ void store(const RowsOf& y, int64_t row, const Result& result) {
    const int64_t to = y.rows.position(row);
    for (int64_t col = threadIdx.x; col < cols; col += blockDim.x) {
      const C value = x.data.load<C>(start + col * x.stride);
      y.data.store<C>(to + col * y.stride, result(value, static_cast<int>(col), 0));
    }
  }
};

// ---- Which of them a call takes.

// Whether all rows of an operand are whole chunks.
inline bool is_chunked(const Operand& x) {
  const int64_t bytes = bit_size(x.dtype) / 8;
  if (!is_float(x.dtype) || x.layout->strides.back() != 1) return false;
  bool whole =
      x.shape().back() * bytes % 16 == 0 && reinterpret_cast<uintptr_t>(Elements(x).base) % 16 == 0;
  for (int axis = 0; axis + 1 < x.layout->rank(); ++axis)
    whole &= x.layout->strides[axis] * bytes % 16 == 0;
  return whole;
}

struct RowLaunch {
  int threads;    // of a block
  int64_t teams;  // of a block
};

// Calls body.template operator()<Row>(launch) with the type of cached rows of T; false where they are too long.
template <typename T, typename Body>
bool visit_cached_rows(int64_t cols, const Body& body) {
  const int64_t chunks = cols / kChunk<T>;
  const RowLaunch warps{kTeamBlockThreads, kTeamBlockThreads / 32};
  if (chunks <= 32) return body.template operator()<CachedRow<T, float, 1, WarpTeam>>(warps), true;
  if (chunks <= 96) return body.template operator()<CachedRow<T, float, 3, WarpTeam>>(warps), true;
  if (chunks <= 192) return body.template operator()<CachedRow<T, float, 6, WarpTeam>>(warps), true;
  const int64_t steps = chunks <= 1024 ? 1 : 4, needed = (chunks + steps - 1) / steps;
  const RowLaunch block{static_cast<int>((needed + 31) / 32 * 32), 1};
  if (chunks <= 1024)
    return body.template operator()<CachedRow<T, float, 1, BlockTeam>>(block), true;
  if (chunks <= 4096)
    return body.template operator()<CachedRow<T, float, 4, BlockTeam>>(block), true;
  return false;
}

template <typename Body>
void visit_plain_rows(DType dtype, int64_t cols, const Body& body) {
  const RowLaunch block{cols <= 64 ? 32 : cols <= 512 ? 128 : cols <= 4096 ? 256 : 1024, 1};
  dtype == DType::f64 ? body.template operator()<PlainRow<double>>(block)
                      : body.template operator()<PlainRow<float>>(block);
}

// The fastest rows for operands of one dtype.
template <typename Body>
void visit_rows(DType dtype, bool chunked, int64_t cols, const Body& body) {
  if (chunked && cols > 0) {
    if (dtype == DType::f32 && visit_cached_rows<float>(cols, body)) return;
    if (dtype == DType::bf16 && visit_cached_rows<bf16>(cols, body)) return;
    if (dtype == DType::f16 && visit_cached_rows<f16>(cols, body)) return;
  }
  visit_plain_rows(dtype, cols, body);
}

}  // namespace brrr
