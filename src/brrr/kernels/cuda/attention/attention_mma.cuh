// What the three kernels of attention on tensor cores share: heads in memory, scores, tiles that are copied in the
// background, and results.
//
// A block has 64 or 128 rows (queries; keys for dK and dV), 16 a warp, and walks the other side in tiles
// (attention_widths.cuh). Scores stay in registers.
//
//   forward   S = Q K^T, online softmax in base 2, O = P V
//   dQ        S and dP = dO V^T again, dS = P (dP - delta), dQ = scale dS K
//   dK, dV    the same transposed: S^T = K Q^T, dP^T = V dO^T, dV = P^T dO, dK = scale dS^T Q
//
// dQ has a kernel of its own: seven products instead of five, but no atomics, so one order of additions. Where heads of 64
// are many, attention_mma_fused_grad_cuda.cu does with five, in one order as well.
#pragma once

#include <limits>

#include "brrr/kernels/cuda/attention/attention_cuda.h"
#include "brrr/kernels/cuda/attention/attention_engines.cuh"
#include "brrr/kernels/cuda/attention/attention_visible.cuh"
#include "brrr/kernels/cuda/attention/attention_widths.cuh"

namespace brrr::kernels::mma {

inline constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;
inline constexpr float kHidden = -std::numeric_limits<float>::infinity();

template <typename T>
struct HeadsOf {
  T* base;
  int64_t batch_stride, head_stride;
  int row_stride;  // is_mma_attention() asks that a row begins within 2^31 elements of its head
  explicit HeadsOf(const Operand& x)
      : base(x.data<T>()),
        batch_stride(x.layout->strides[0]),
        head_stride(x.layout->strides[1]),
        row_stride(static_cast<int>(x.layout->strides[2])) {}
  __device__ T* at(int batch, int head) const {
    return base + batch * batch_stride + head * head_stride;
  }
};

// Scores in units of log2 are unit * raw: raw is q k itself, or what the soft cap makes of it.
struct ScoreRule {
  float unit;       // scale log2(e); 1 where raw is capped
  float cap_scale;  // scale / cap
  float cap_log2;   // cap log2(e)
  explicit ScoreRule(const AttentionShape& shape)
      : unit(shape.soft_cap > 0 ? 1 : shape.scale * kLog2E),
        cap_scale(shape.soft_cap > 0 ? shape.scale / shape.soft_cap : 0),
        cap_log2(shape.soft_cap * kLog2E) {}
  __device__ float capped(float product) const { return cap_log2 * tanhf(product * cap_scale); }
  // d capped / d (scale product), from the capped score
  __device__ float slope(float raw) const {
    const float t = raw / cap_log2;
    return 1 - t * t;
  }
  // 2^(unit raw - shift)
  __device__ float power(float raw, float shift) const {
    return exp2_fast(fmaf(raw, unit, -shift));
  }
};

// Rows [first, first + Rows) of x into a tile, in the background; behind row `limit` and column `dim` there are zeros.
template <typename Engine, int D, int Rows, int Threads, typename T>
__device__ void load_tile(T* tile, const T* x, int row_stride, int first, int limit, int dim) {
  // Neighbouring threads have the chunks of a row, or of a piece of it: as many as are a power of two, so that no
  // position takes a division.
  constexpr int kChunks = D / 8, kPiece = kChunks & -kChunks,
                kRounds = (Rows * kPiece + Threads - 1) / Threads;
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {  // a known number of them: no loop is left
    const int i = round * Threads + static_cast<int>(threadIdx.x);
    if (Rows * kPiece % Threads != 0 && i >= Rows * kPiece) return;
    const int row = i / kPiece;
#pragma unroll
    for (int piece = 0; piece < kChunks; piece += kPiece) {
      const int chunk = piece + i % kPiece;
      copy_chunk(tile + Engine::template offset<D, Rows>(row, chunk),
                 x + first * row_stride + (row * row_stride + chunk * 8),
                 first + row < limit && chunk * 8 < dim);
    }
  }
}

template <int N>
__device__ void cap_all(float (&scores)[N][4], const ScoreRule& rule) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[n][i] = rule.capped(scores[n][i]);
  }
}

// ---- Scores that are not seen become -infinity. Where nothing but causality hides, a score takes one comparison with a
// number that is known when this is compiled.

// Rows of the scores are queries [row, row + 16) of the warp's block [first, last], columns are keys from `tile` on.
template <int N>
__device__ void hide_keys(float (&scores)[N][4], const DeviceVisible& visible, int queries,
                          int first, int last, int row, int tile) {
  const int lane = threadIdx.x % 32, query = row + lane / 4, key = tile + lane % 4 * 2;
  const bool is_plain = !visible.documents && tile >= visible.begin(last);
  if (is_plain && tile + N * 8 <= visible.end(first)) return;
  if (is_plain && visible.causal) {
    const int distance = query + visible.shift - key;
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (distance + i / 2 * 8 < n * 8 + i % 2) scores[n][i] = kHidden;
      }
    }
    return;
  }
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (query + i / 2 * 8 >= queries || !visible.sees(query + i / 2 * 8, key + n * 8 + i % 2))
        scores[n][i] = kHidden;
    }
  }
}

// Rows are keys [row, row + 16), columns are queries from `tile` on.
template <int N>
__device__ void hide_queries(float (&scores)[N][4], const DeviceVisible& visible, int queries,
                             int row, int tile) {
  const int lane = threadIdx.x % 32, query = tile + lane % 4 * 2, key = row + lane / 4;
  const int tile_last = min(queries, tile + N * 8) - 1;
  const bool is_plain =
      !visible.documents && tile + N * 8 <= queries && row >= visible.begin(tile_last);
  if (is_plain && row + 16 <= visible.end(tile)) return;
  if (is_plain && visible.causal) {
    const int distance = key - (query + visible.shift);
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (distance + i / 2 * 8 > n * 8 + i % 2) scores[n][i] = kHidden;
      }
    }
    return;
  }
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (query + n * 8 + i % 2 >= queries || !visible.sees(query + n * 8 + i % 2, key + i / 2 * 8))
        scores[n][i] = kHidden;
    }
  }
}

// Results of a tile as the first operand of the next product.
template <typename T, int N>
__device__ void pack_tile(uint32_t (&packed)[N / 2][4], const float (&values)[N][4]) {
#pragma unroll
  for (int k = 0; k < N / 2; ++k) pack_rows<T>(packed[k], values[2 * k], values[2 * k + 1]);
}

template <int D>
__device__ void clear(float (&acc)[D / 8][4]) {
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) acc[n][i] = 0;
  }
}

// Rows of a head of a result, `dim` elements each; a lane has two neighbours of a row.
template <typename T, int D>
__device__ void store_rows(T* out, int row_stride, int row, int limit, int dim,
                           const float (&acc)[D / 8][4], float low_factor, float high_factor) {
  const int lane = threadIdx.x % 32, low = row + lane / 4, high = low + 8, col = lane % 4 * 2;
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
    if (n * 8 >= dim) return;  // whole chunks: the same for all lanes
    if (low < limit)
      *reinterpret_cast<uint32_t*>(out + int64_t{low} * row_stride + n * 8 + col) =
          pack<T>(acc[n][0] * low_factor, acc[n][1] * low_factor);
    if (high < limit)
      *reinterpret_cast<uint32_t*>(out + int64_t{high} * row_stride + n * 8 + col) =
          pack<T>(acc[n][2] * high_factor, acc[n][3] * high_factor);
  }
}

// The same through shared memory, in chunks of 16 bytes: 16 rows of a warp, which has 16 of the rows of a tile for itself.
template <typename Engine, int Rows, typename T>
__device__ void store_rows_staged(T* stage, T* out, int row_stride, int row, int limit,
                                  const float (&acc)[8][4], float factor) {
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * 16;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    float left[4], right[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      left[i] = acc[2 * c][i] * factor, right[i] = acc[2 * c + 1][i] * factor;
    uint32_t packed[4];
    pack_rows<T>(packed, left, right);
    store_matrices(stage + Engine::template offset<64, Rows>(first + lane % 16, c * 2 + lane / 16),
                   packed);
  }
  __syncwarp();
#pragma unroll
  for (int round = 0; round < 4; ++round) {
    const int at = round * 4 + lane / 8, chunk = lane % 8;
    const uint4 x = *reinterpret_cast<const uint4*>(
        stage + Engine::template offset<64, Rows>(first + at, chunk));
    if (row + at < limit)
      *reinterpret_cast<uint4*>(out + int64_t{row + at} * row_stride + chunk * 8) = x;
  }
  __syncwarp();
}

__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// Which block of rows this is: long rows first where later ones see more.
__device__ inline int row_block(bool causal) {
  return static_cast<int>(causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
}

// ---- Backward.

// What backward needs of each query: the logsumexp in units of log2, and delta = sum(dO O) - dL.
struct QueryFacts {
  float* log2_total;
  float* delta;
};

// Those of the tile of queries from `first` on, in the background; zeros behind the last one.
template <int Queries>
__device__ void load_facts(float* totals, float* deltas, const QueryFacts& facts,
                           const AttentionShape& shape, int batch, int head, int first) {
  if (threadIdx.x >= Queries) return;
  const int query = first + static_cast<int>(threadIdx.x);
  const bool there = query < shape.queries;
  const int64_t flat = (int64_t{batch} * shape.heads + head) * shape.queries + (there ? query : 0);
  copy_word(totals + threadIdx.x, facts.log2_total + flat, there);
  copy_word(deltas + threadIdx.x, facts.delta + flat, there);
}

// dK and dV of the call.
void run_key_grads(const CudaCall& call, const AttentionShape& shape, const QueryFacts& facts);

// All three gradients in one kernel (attention_mma_fused_grad_cuda.cu): which calls it takes on a Hopper GPU, the bytes of
// its part sums (a multiple of 16), and the call.
void run_fused_grad(const CudaCall& call, const AttentionShape& shape, const QueryFacts& facts,
                    void* parts);

}  // namespace brrr::kernels::mma
