// Rows along the last axis, one block a row at a time. A row that lies in order, at whole 16-byte chunks, is
// read once, 16 bytes a thread, and kept in registers (CachedRow); any other is read element by element as
// often as it is asked for (PlainRow). Kernels are written once, against either.
#pragma once

#include <limits>
#include <type_traits>

#include "brrr/ops/elements.cuh"

namespace brrr {

// ---- Sums and maxima of a block, the same in all threads. Warps combine in order: one order of additions.

constexpr int kMaxWarps = 32;

template <typename C>
__device__ C block_sum(C value) {
  __shared__ C parts[kMaxWarps];
  for (int distance = 16; distance > 0; distance /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  const int warps = (blockDim.x + 31) / 32;
  if (warps == 1) return value;
  __syncthreads();  // the last use of parts is over
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  C total = parts[0];
  for (int warp = 1; warp < warps; ++warp) total += parts[warp];
  return total;
}

// NaN wins, as in max().
template <typename C>
__device__ C larger(C a, C b) {
  return b > a || b != b ? b : a;
}
template <typename C>
__device__ C block_max(C value) {
  __shared__ C parts[kMaxWarps];
  for (int distance = 16; distance > 0; distance /= 2)
    value = larger(value, __shfl_xor_sync(0xffffffffu, value, distance));
  const int warps = (blockDim.x + 31) / 32;
  if (warps == 1) return value;
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  C largest = parts[0];
  for (int warp = 1; warp < warps; ++warp) largest = larger(largest, parts[warp]);
  return largest;
}

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

// Chunks threadIdx.x, threadIdx.x + blockDim.x, ... of a row; `Steps` of them at most.
template <typename T, typename C, int Steps>
struct CachedRow {
  static constexpr bool kCached = true;
  using Value = C;
  C values[Steps * kChunk<T>];
  int chunks;

  __device__ CachedRow(const RowsOf& x, int64_t row, int64_t cols)
      : chunks(static_cast<int>(cols / kChunk<T>)) {
    const uint4* const from = reinterpret_cast<const uint4*>(
        reinterpret_cast<const T*>(x.data.base) + x.rows.position(row));
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      const int chunk = s * blockDim.x + threadIdx.x;
      if (chunk >= chunks) continue;
      const uint4 loaded = from[chunk];
      const T* const elements = reinterpret_cast<const T*>(&loaded);
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i)
        values[s * kChunk<T> + i] = convert_element<C>(elements[i]);
    }
  }

  // visit(value, column, place): place is a number below Steps * kChunk that is known at compile time.
  template <typename Visit>
  __device__ void for_each(const Visit& visit) {
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      const int chunk = s * blockDim.x + threadIdx.x;
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
      const int chunk = s * blockDim.x + threadIdx.x;
      if (chunk >= chunks) continue;
      uint4 stored;
      T* const elements = reinterpret_cast<T*>(&stored);
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i)
        elements[i] = convert_element<T>(
            result(values[s * kChunk<T> + i], chunk * kChunk<T> + i, s * kChunk<T> + i));
      to[chunk] = stored;
    }
  }
};

template <typename C>
struct PlainRow {
  static constexpr bool kCached = false;
  using Value = C;
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

constexpr int kMaxSteps = 4;

// Whether all rows of an operand are whole chunks.
inline bool is_chunked(const Operand& x) {
  const int64_t bytes = bit_size(x.dtype) / 8;
  if (!is_float(x.dtype) || x.layout->strides.back() != 1) return false;
  bool whole = x.shape().back() * bytes % 16 == 0 &&
               (reinterpret_cast<uintptr_t>(x.base) + x.layout->offset * bytes) % 16 == 0;
  for (int axis = 0; axis + 1 < x.layout->rank(); ++axis)
    whole &= x.layout->strides[axis] * bytes % 16 == 0;
  return whole;
}

// Threads for rows of `units` pieces of work with at most kMaxSteps a thread; 0 where a row is too long.
inline int threads_for(int64_t units) {
  const int64_t needed = (units + kMaxSteps - 1) / kMaxSteps;
  if (needed > 1024) return 0;
  // Few steps while blocks are small: rows finish sooner and more of them are in flight.
  int threads = 32;
  while (threads < needed || (threads < 256 && threads < units)) threads *= 2;
  return threads;
}

// Calls body.template operator()<Row>(threads) with the row type for `chunked` operands of one dtype.
template <typename Body>
void visit_rows(DType dtype, bool chunked, int64_t cols, const Body& body) {
  const auto cached = [&]<typename T>() {
    const int64_t chunks = cols / kChunk<T>;
    const int threads = threads_for(chunks);
    const int64_t steps = threads == 0 ? kMaxSteps + 1 : (chunks + threads - 1) / threads;
    if (steps == 1) return body.template operator()<CachedRow<T, float, 1>>(threads), true;
    if (steps == 2) return body.template operator()<CachedRow<T, float, 2>>(threads), true;
    if (steps <= kMaxSteps)
      return body.template operator()<CachedRow<T, float, kMaxSteps>>(threads), true;
    return false;
  };
  if (chunked && cols > 0) {
    if (dtype == DType::f32 && cached.template operator()<float>()) return;
    if (dtype == DType::bf16 && cached.template operator()<bf16>()) return;
    if (dtype == DType::f16 && cached.template operator()<f16>()) return;
  }
  const int threads = cols <= 64 ? 32 : cols <= 512 ? 128 : cols <= 4096 ? 256 : 1024;
  dtype == DType::f64 ? body.template operator()<PlainRow<double>>(threads)
                      : body.template operator()<PlainRow<float>>(threads);
}

}  // namespace brrr
