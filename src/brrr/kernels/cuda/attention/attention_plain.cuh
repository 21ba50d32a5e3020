// Attention for every dtype, head size and rule, in plain arithmetic: what its kernels share. A block has 16
// queries (or keys), 4 a warp; tiles of 32 keys (queries) come through shared memory. For scores a lane has one
// of the 32; for sums of rows it has every 32nd column.
#pragma once

#include <limits>

#include "brrr/kernels/cuda/attention/attention_cuda.h"
#include "brrr/kernels/cuda/attention/attention_visible.cuh"

namespace brrr::kernels::plain_attention {

inline constexpr int kWarps = 4, kRowsPerWarp = 4, kRows = kWarps * kRowsPerWarp, kTile = 32;
inline constexpr int kMaxHead = 256;
inline constexpr unsigned kAllLanes = 0xffffffffu;

struct HeadMatrix {
  Elements data;
  HeadStrides strides;

  HeadMatrix(const Operand& x) : data(x), strides{} {  // NOLINT: an operand as a kernel sees it
    const Strides& s = x.layout->strides;
    strides = {s[0], s[1], s[2], x.layout->rank() == 4 ? s[3] : 0};
  }
  template <typename C>
  __device__ C at(int batch, int head, int row, int col) const {
    return data.load<C>(place(batch, head, row, col));
  }
  template <typename C>
  __device__ void store(int batch, int head, int row, int col, C value) const {
    data.store<C>(place(batch, head, row, col), value);
  }
  __device__ int64_t place(int batch, int head, int row, int col) const {
    return batch * strides.batch + head * strides.head + row * strides.row + col * strides.col;
  }
};

// Rows [first, first + count) of a head into shared memory, `stride` apart; zeros behind `limit`.
template <typename C>
__device__ void load_rows(C* shared, int stride, const HeadMatrix& x, int batch, int head,
                          int first, int count, int limit, int cols) {
  for (int i = threadIdx.x; i < count * cols; i += kWarps * 32) {
    const int row = i / cols, col = i % cols;
    shared[row * stride + col] =
        first + row < limit ? x.at<C>(batch, head, first + row, col) : C(0);
  }
}

template <typename C>
__device__ C dot(const C* a, const C* b, int count) {
  C sum = 0;
  for (int d = 0; d < count; ++d) sum = fma(a[d], b[d], sum);
  return sum;
}

template <typename C>
__device__ C warp_max(C value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    const C other = __shfl_xor_sync(kAllLanes, value, distance);
    value = other > value ? other : value;
  }
  return value;
}
template <typename C>
__device__ C warp_sum(C value) {
  for (int distance = 16; distance > 0; distance /= 2)
    value += __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}

// scale * q k, capped; `slope` is the derivative of the cap.
template <typename C>
struct Score {
  C value, slope;
};
template <typename C>
__device__ Score<C> score_of(const AttentionShape& shape, C product) {
  const C scaled = product * static_cast<C>(shape.wide_scale);
  if (shape.wide_soft_cap <= 0) return {scaled, C(1)};
  const C cap = static_cast<C>(shape.wide_soft_cap), t = tanh(scaled / cap);
  return {cap * t, C(1) - t * t};
}

// acc[c] += sum over lanes j of weight_j rows[j][lane + 32 c]
template <typename C, int Columns>
__device__ void add_rows(C (&acc)[Columns], C weight, const C* rows, int stride, int cols) {
  const int lane = threadIdx.x % 32;
  for (int j = 0; j < kTile; ++j) {
    const C w = __shfl_sync(kAllLanes, weight, j);
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
      if (lane + 32 * c < cols) acc[c] = fma(w, rows[j * stride + lane + 32 * c], acc[c]);
    }
  }
}

struct Unit {
  int block, head, batch;
  __device__ Unit(int blocks, int heads) {
    const int unit = static_cast<int>(blockIdx.x);
    block = unit % blocks;
    head = unit / blocks % heads;
    batch = unit / blocks / heads;
  }
};

// ---- Launches.

// Calls body.template operator()<C, Columns>() for the sizes of the call.
template <typename Body>
void visit_sizes(const CudaCall& call, const AttentionShape& shape, const Body& body) {
  const int widest = std::max(shape.head_dim, shape.value_dim);
  check(widest <= kMaxHead, call.op.name, ": heads of ", widest, " elements; use at most ",
        kMaxHead, " on a GPU");
  const auto with_type = [&]<typename C>() {
    if (widest <= 32) return body.template operator()<C, 1>();
    if (widest <= 64) return body.template operator()<C, 2>();
    if (widest <= 128) return body.template operator()<C, 4>();
    return body.template operator()<C, 8>();
  };
  call.input(0).dtype == DType::f64 ? with_type.template operator()<double>()
                                    : with_type.template operator()<float>();
}

template <typename Kernel, typename... Arguments>
void launch(const CudaCall& call, Kernel* kernel, int64_t blocks, int64_t shared_bytes,
            const Arguments&... arguments) {
  if (blocks == 0) return;
  check(blocks < INT32_MAX, call.op.name, ": too many queries and heads for one launch");
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(shared_bytes));
  kernel<<<static_cast<unsigned>(blocks), kWarps * 32, static_cast<size_t>(shared_bytes),
           call.stream>>>(arguments...);
  cuda::check_launch(call.op.name);
}

inline int64_t row_blocks(int rows) { return (rows + kRows - 1) / kRows; }

}  // namespace brrr::kernels::plain_attention
