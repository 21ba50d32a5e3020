// Attention on tensor cores for bf16 and f16, by wgmma on Hopper and mma.sync elsewhere. A block has 128 rows (queries; keys for dK and dV), 16 a warp,
// and walks the other side in tiles that are copied in the background. Scores stay in registers.
//
//   forward   S = Q K^T, online softmax in base 2, O = P V
//   dQ        S and dP = dO V^T again, dS = P (dP - delta), dQ = scale dS K
//   dK, dV    the same transposed: S^T = K Q^T, dP^T = V dO^T, dV = P^T dO, dK = scale dS^T Q
//
// dQ has a kernel of its own: seven products instead of five, but no atomics, so one order of additions.
#include <limits>

#include "brrr/ops/attention_cuda.h"
#include "brrr/ops/attention_visible.cuh"
#include "brrr/ops/mma.cuh"
#include "brrr/ops/wgmma.cuh"

namespace brrr {
namespace {

using namespace mma;

constexpr int kWarps = 8, kThreads = kWarps * 32, kBlockRows = 16 * kWarps;
constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;
constexpr float kHidden = -std::numeric_limits<float>::infinity();

template <typename T>
struct HeadsOf {
  const T* base;
  int64_t batch_stride, head_stride, row_stride;
  explicit HeadsOf(const Operand& x)
      : base(x.data<const T>()),
        batch_stride(x.layout->strides[0]),
        head_stride(x.layout->strides[1]),
        row_stride(x.layout->strides[2]) {}
  __device__ const T* at(int batch, int head) const {
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

// ---- Two engines for the products of a block. Both leave results as mma.cuh describes them.
//   score:  c[16 or 64 rows of the unit][N] = x y^T, x and y tiles [.][D]
//   add:    acc[.][D] += weights [.][N] times a tile [N][D]; weights are packed by pack()
// Products are started and run on while the threads compute; wait<Left>(c) makes the results in c readable and
// leaves the last `Left` products running. They finish in the order in which they were started.

// mma.sync: a warp works for itself on 16 rows.
struct WarpEngine {
  static constexpr int kUnitRows = 16;
  template <int D, int Rows>
  static __device__ int offset(int row, int chunk) {
    return tile_offset<D>(row, chunk);
  }
  static __device__ void tiles_are_there() {}

  template <typename T, int D, int XRows, int N>
  static __device__ void score(float (&c)[N / 8][4], const T* x, const T* y) {
    const int row = threadIdx.x / 32 * 16;
#pragma unroll
    for (int n = 0; n < N / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) c[n][i] = 0;
    }
#pragma unroll
    for (int step = 0; step < D / 16; step += 2) {
      uint32_t first[4], second[4];
      load_rows_fragment<D>(first, x, row, step);
      load_rows_fragment<D>(second, x, row, step + 1);
#pragma unroll
      for (int n = 0; n < N / 8; ++n) {
        uint32_t b[4];
        load_columns_fragment<D>(b, y, n * 8, step);
        multiply<T>(c[n], first, b[0], b[1]);
        multiply<T>(c[n], second, b[2], b[3]);
      }
    }
  }

  template <typename T, int D, int N>
  static __device__ void add(float (&acc)[D / 8][4], const uint32_t (&weights)[N / 16][4],
                             const T* tile) {
#pragma unroll
    for (int k = 0; k < N / 16; ++k) {
#pragma unroll
      for (int block = 0; block < D / 16; ++block) {
        uint32_t b[4];
        load_sum_fragment<D>(b, tile, k * 16, block);
        multiply<T>(acc[2 * block], weights[k], b[0], b[1]);
        multiply<T>(acc[2 * block + 1], weights[k], b[2], b[3]);
      }
    }
  }

  template <int Left, int N>
  static __device__ void wait(float (&)[N][4]) {}  // nothing runs in the background
};

// wgmma: four warps work together on 64 rows, straight from shared memory. D is 64 or 128.
struct WarpgroupEngine {
  static constexpr int kUnitRows = 64;
  template <int D, int Rows>
  static __device__ int offset(int row, int chunk) {
    return chunk / 8 * (Rows * 64) + row * 64 + ((chunk % 8) ^ (row & 7)) * 8;
  }
  // What threads copied must be visible to wgmma, which reads past the ordinary path.
  static __device__ void tiles_are_there() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
#endif
  }

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  // A step of 16 columns is 32 bytes of a 128-byte row; a block of 64 columns has four of them.
  template <int Rows, typename T>
  static __device__ uint64_t along_columns(const T* tile, int row, int step) {
    return wgmma::descriptor(tile + step / 4 * (Rows * 64) + row * 64 + step % 4 * 16, 0);
  }
  template <int Rows, typename T>
  static __device__ uint64_t along_rows(const T* tile, int row) {
    return wgmma::descriptor(tile + row * 64, Rows * 128);
  }

  template <typename T, int D, int XRows, int N>
  static __device__ void score(float (&c)[N / 8][4], const T* x, const T* y) {
    const int row = threadIdx.x / 128 * 64;
    wgmma::fence();
#pragma unroll
    for (int step = 0; step < D / 16; ++step)
      wgmma::multiply_step<T, N>(c, along_columns<XRows>(x, row, step),
                                 along_columns<N>(y, 0, step), step != 0);
    wgmma::commit();
  }

  template <typename T, int D, int N>
  static __device__ void add(float (&acc)[D / 8][4], const uint32_t (&weights)[N / 16][4],
                             const T* tile) {
    wgmma::results_are_there(acc);
    wgmma::fence();
#pragma unroll
    for (int k = 0; k < N / 16; ++k)
      wgmma::add_step<T, D>(acc, weights[k], along_rows<N>(tile, k * 16));
    wgmma::commit();
  }

  template <int Left, int N>
  static __device__ void wait(float (&c)[N][4]) {
    wgmma::wait<Left>();
    wgmma::results_are_there(c);
  }
#else
  template <typename T, int D, int XRows, int N>
  static __device__ void score(float (&)[N / 8][4], const T*, const T*) {
    __trap();  // never launched: is_hopper() asks the device
  }
  template <typename T, int D, int N>
  static __device__ void add(float (&)[D / 8][4], const uint32_t (&)[N / 16][4], const T*) {
    __trap();
  }
  template <int Left, int N>
  static __device__ void wait(float (&)[N][4]) {
    __trap();
  }
#endif
};

// Rows [first, first + Rows) of x into a tile, in the background; behind `limit` there are zeros.
template <typename Engine, int D, int Rows, typename T>
__device__ void load_tile(T* tile, const T* x, int64_t row_stride, int first, int limit) {
  constexpr int kChunks = D / 8;
#pragma unroll
  for (int i = threadIdx.x; i < Rows * kChunks; i += kThreads) {
    const int row = i / kChunks, chunk = i % kChunks;
    const bool there = first + row < limit;
    const T* const from = x + (there ? first + row : 0) * row_stride + chunk * 8;
    copy_chunk(tile + Engine::template offset<D, Rows>(row, chunk), from, there);
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

// Rows of a contiguous result [rows, D]; a lane has two neighbours of a row.
template <typename T, int D>
__device__ void store_rows(T* out, int row, int limit, const float (&acc)[D / 8][4],
                           float low_factor, float high_factor) {
  const int lane = threadIdx.x % 32, low = row + lane / 4, high = low + 8, col = lane % 4 * 2;
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
    if (low < limit)
      *reinterpret_cast<uint32_t*>(out + int64_t{low} * D + n * 8 + col) =
          pack<T>(acc[n][0] * low_factor, acc[n][1] * low_factor);
    if (high < limit)
      *reinterpret_cast<uint32_t*>(out + int64_t{high} * D + n * 8 + col) =
          pack<T>(acc[n][2] * high_factor, acc[n][3] * high_factor);
  }
}

__device__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// Which block of rows this is: long rows first where later ones see more.
__device__ int row_block(bool causal) {
  return static_cast<int>(causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
}

// ---- Forward.

template <int D>
constexpr int kForwardKeys = 64;

template <typename Engine, typename T, int D, bool Capped>
__global__ void __launch_bounds__(kThreads, D == 64 && Engine::kUnitRows == 64 ? 2 : 1)
    mma_forward_kernel(AttentionShape shape, ScoreRule rule, HeadsOf<T> q, HeadsOf<T> k,
                       HeadsOf<T> v, T* out, float* logsumexp, cuda::FaultNote note) {
  constexpr int kKeys = kForwardKeys<D>;
  extern __shared__ __align__(1024) unsigned char memory[];
  T* const qs = reinterpret_cast<T*>(memory);
  T* const ks = qs + kBlockRows * D;  // two tiles
  T* const vs = ks + 2 * kKeys * D;   // two tiles
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int head = blockIdx.y, batch = blockIdx.z;
  const int kv_head = head / (shape.heads / shape.kv_heads);
  const DeviceVisible visible(shape, batch, note);
  const int first = row_block(shape.causal) * kBlockRows,
            last = min(shape.queries, first + kBlockRows) - 1;
  const T *const k_head = k.at(batch, kv_head), *const v_head = v.at(batch, kv_head);
  const int begin = visible.begin(first) / kKeys * kKeys, end = visible.end(last);
  const auto load_keys = [&](int tile, int buffer) {
    load_tile<Engine, D, kKeys>(ks + buffer * kKeys * D, k_head, k.row_stride, tile, shape.keys);
    load_tile<Engine, D, kKeys>(vs + buffer * kKeys * D, v_head, v.row_stride, tile, shape.keys);
    finish_copies();
  };
  load_tile<Engine, D, kBlockRows>(qs, q.at(batch, head), q.row_stride, first, shape.queries);
  finish_copies();
  if (begin < end) load_keys(begin, 0);

  float acc[D / 8][4], largest[2] = {kHidden, kHidden}, total[2] = {0, 0};
  clear<D>(acc);
  const int row[2] = {first + warp * 16 + lane / 4, first + warp * 16 + lane / 4 + 8};
  // Rows that are multiplied together; what none of them sees is skipped.
  const int unit = first + warp * 16 / Engine::kUnitRows * Engine::kUnitRows;
  const int unit_begin = visible.begin(unit),
            unit_end = visible.end(min(last, unit + Engine::kUnitRows - 1));
  int buffer = 0;
  for (int tile = begin; tile < end; tile += kKeys, buffer ^= 1) {
    wait_copies<0>();
    Engine::tiles_are_there();
    __syncthreads();  // the tile is there, and nobody reads the other buffer any more
    if (tile + kKeys < end) load_keys(tile + kKeys, buffer ^ 1);
    if (tile >= unit_end || tile + kKeys <= unit_begin) continue;  // no barrier is inside
    float scores[kKeys / 8][4];
    Engine::template score<T, D, kBlockRows, kKeys>(scores, qs, ks + buffer * kKeys * D);
    Engine::template wait<0>(scores);
    const bool all_seen =
        !visible.documents && tile >= visible.begin(last) && tile + kKeys <= visible.end(first);
    if constexpr (Capped) cap_all(scores, rule);
    // Hiding is rare, and stays out of the loops below.
    if (!all_seen) {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int query = row[i / 2], key = tile + n * 8 + lane % 4 * 2 + i % 2;
          if (query >= shape.queries || !visible.sees(query, key)) scores[n][i] = kHidden;
        }
      }
    }
    float tile_largest[2] = {kHidden, kHidden};
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) tile_largest[i / 2] = fmaxf(tile_largest[i / 2], scores[n][i]);
    }
    float shift[2], kept[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float next = fmaxf(largest[r], quad_max(tile_largest[r]) * rule.unit);
      shift[r] = next == kHidden ? 0 : next;
      kept[r] = exp2_fast(largest[r] - shift[r]);
      largest[r] = next;
      total[r] *= kept[r];
    }
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        scores[n][i] = rule.power(scores[n][i], shift[i / 2]);
        total[i / 2] += scores[n][i];
      }
    }
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) acc[n][i] *= kept[i / 2];
    }
    uint32_t weights[kKeys / 16][4];
    pack_tile<T>(weights, scores);
    Engine::template add<T, D, kKeys>(acc, weights, vs + buffer * kKeys * D);
    Engine::template wait<0>(acc);
  }
  float inverse[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float sum = quad_sum(total[r]);
    inverse[r] = sum == 0 ? 0 : 1 / sum;
    const int64_t flat = (int64_t{batch} * shape.heads + head) * shape.queries + row[r];
    if (lane % 4 == 0 && row[r] < shape.queries)
      logsumexp[flat] = sum == 0 ? kHidden : (largest[r] + log2f(sum)) * kLn2;
  }
  T* const out_head = out + (int64_t{batch} * shape.heads + head) * shape.queries * D;
  store_rows<T, D>(out_head, first + warp * 16, shape.queries, acc, inverse[0], inverse[1]);
}

// ---- What backward needs of each query: the logsumexp in units of log2, and delta = sum(dO O) - dL.

struct QueryFacts {
  float* log2_total;
  float* delta;
};

template <typename T, int D>
__global__ void __launch_bounds__(256)
    query_facts_kernel(HeadsOf<T> out, HeadsOf<T> dout, const float* logsumexp, Elements dlogsumexp,
                       Walk dlogsumexp_walk, QueryFacts facts, int heads, int queries,
                       int64_t rows) {
  constexpr int kLanes = D / 8;  // threads of a row, 16 bytes each
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  const int64_t flat = thread / kLanes, safe = min(flat, rows - 1);
  const int chunk = static_cast<int>(thread % kLanes);
  const int row = static_cast<int>(safe % queries), head = static_cast<int>(safe / queries % heads),
            batch = static_cast<int>(safe / queries / heads);
  const uint4 a =
      *reinterpret_cast<const uint4*>(out.at(batch, head) + row * out.row_stride + chunk * 8);
  const uint4 b =
      *reinterpret_cast<const uint4*>(dout.at(batch, head) + row * dout.row_stride + chunk * 8);
  const T *x = reinterpret_cast<const T*>(&a), *y = reinterpret_cast<const T*>(&b);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum = fmaf(x[i].to_float(), y[i].to_float(), sum);
  for (int distance = kLanes / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  if (chunk != 0 || flat >= rows) return;
  const float total = logsumexp[flat];
  facts.log2_total[flat] = total == kHidden ? 0 : total * kLog2E;
  facts.delta[flat] = sum - dlogsumexp.load<float>(dlogsumexp_walk.position(flat));
}

// ---- dQ.

// Rows of a tile. A warp alone has no registers for 64 where heads are wide; a warpgroup has, but with 32 two
// blocks fit a multiprocessor where heads are narrow, and one computes while the other multiplies.
template <typename Engine, int D>
constexpr int kBackwardTile = (Engine::kUnitRows == 16) == (D == 128) ? 32 : 64;
template <typename Engine, int D>
constexpr int kBackwardBlocks = Engine::kUnitRows == 64 && D == 64 ? 2 : 1;

template <typename Engine, typename T, int D, bool Capped>
__global__ void __launch_bounds__(kThreads, (kBackwardBlocks<Engine, D>))
    mma_query_grad_kernel(AttentionShape shape, ScoreRule rule, HeadsOf<T> q, HeadsOf<T> k,
                          HeadsOf<T> v, HeadsOf<T> dout, QueryFacts facts, T* dq,
                          cuda::FaultNote note) {
  constexpr int kKeys = kBackwardTile<Engine, D>;
  extern __shared__ __align__(1024) unsigned char memory[];
  T* const qs = reinterpret_cast<T*>(memory);
  T* const dos = qs + kBlockRows * D;
  T* const ks = dos + kBlockRows * D;  // two tiles
  T* const vs = ks + 2 * kKeys * D;    // two tiles
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int head = blockIdx.y, batch = blockIdx.z;
  const int kv_head = head / (shape.heads / shape.kv_heads);
  const DeviceVisible visible(shape, batch, note);
  const int first = row_block(shape.causal) * kBlockRows,
            last = min(shape.queries, first + kBlockRows) - 1;
  const T *const k_head = k.at(batch, kv_head), *const v_head = v.at(batch, kv_head);
  const int begin = visible.begin(first) / kKeys * kKeys, end = visible.end(last);
  const auto load_keys = [&](int tile, int buffer) {
    load_tile<Engine, D, kKeys>(ks + buffer * kKeys * D, k_head, k.row_stride, tile, shape.keys);
    load_tile<Engine, D, kKeys>(vs + buffer * kKeys * D, v_head, v.row_stride, tile, shape.keys);
    finish_copies();
  };
  load_tile<Engine, D, kBlockRows>(qs, q.at(batch, head), q.row_stride, first, shape.queries);
  load_tile<Engine, D, kBlockRows>(dos, dout.at(batch, head), dout.row_stride, first,
                                   shape.queries);
  finish_copies();
  if (begin < end) load_keys(begin, 0);

  const int row[2] = {first + warp * 16 + lane / 4, first + warp * 16 + lane / 4 + 8};
  // Rows that are multiplied together; what none of them sees is skipped.
  const int unit = first + warp * 16 / Engine::kUnitRows * Engine::kUnitRows;
  const int unit_begin = visible.begin(unit),
            unit_end = visible.end(min(last, unit + Engine::kUnitRows - 1));
  float log2_total[2], delta[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int64_t flat = (int64_t{batch} * shape.heads + head) * shape.queries + row[r];
    const bool there = row[r] < shape.queries;
    log2_total[r] = there ? facts.log2_total[flat] : 0;
    delta[r] = there ? facts.delta[flat] : 0;
  }
  float acc[D / 8][4];
  clear<D>(acc);
  int buffer = 0;
  for (int tile = begin; tile < end; tile += kKeys, buffer ^= 1) {
    wait_copies<0>();
    Engine::tiles_are_there();
    __syncthreads();
    if (tile + kKeys < end) load_keys(tile + kKeys, buffer ^ 1);
    if (tile >= unit_end || tile + kKeys <= unit_begin) continue;  // no barrier is inside
    const T *const k_tile = ks + buffer * kKeys * D, *const v_tile = vs + buffer * kKeys * D;
    float scores[kKeys / 8][4], grads[kKeys / 8][4];
    Engine::template score<T, D, kBlockRows, kKeys>(scores, qs, k_tile);
    Engine::template score<T, D, kBlockRows, kKeys>(grads, dos, v_tile);
    Engine::template wait<1>(scores);
    const bool all_seen =
        !visible.documents && tile >= visible.begin(last) && tile + kKeys <= visible.end(first);
    if constexpr (Capped) cap_all(scores, rule);
    if (!all_seen) {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int query = row[i / 2], key = tile + n * 8 + lane % 4 * 2 + i % 2;
          if (query >= shape.queries || !visible.sees(query, key)) scores[n][i] = kHidden;
        }
      }
    }
    float slopes[Capped ? kKeys / 8 : 1][4];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float p = rule.power(scores[n][i], log2_total[i / 2]);
        if constexpr (Capped) slopes[n][i] = p == 0 ? 0 : rule.slope(scores[n][i]);
        scores[n][i] = p;
      }
    }
    Engine::template wait<0>(grads);  // it ran while the powers were computed
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        grads[n][i] = scores[n][i] * (grads[n][i] - delta[i / 2]);
        if constexpr (Capped) grads[n][i] *= slopes[n][i];
      }
    }
    uint32_t weights[kKeys / 16][4];
    pack_tile<T>(weights, grads);
    Engine::template add<T, D, kKeys>(acc, weights, k_tile);
    Engine::template wait<0>(acc);
  }
  T* const dq_head = dq + (int64_t{batch} * shape.heads + head) * shape.queries * D;
  store_rows<T, D>(dq_head, first + warp * 16, shape.queries, acc, shape.scale, shape.scale);
}

// ---- dK and dV. A block has 128 keys of a kv head and walks the queries of its group of heads in order.

template <typename Engine, typename T, int D, bool Capped>
__global__ void __launch_bounds__(kThreads, (kBackwardBlocks<Engine, D>))
    mma_key_grad_kernel(AttentionShape shape, ScoreRule rule, HeadsOf<T> q, HeadsOf<T> k,
                        HeadsOf<T> v, HeadsOf<T> dout, QueryFacts facts, T* dk, T* dv,
                        cuda::FaultNote note) {
  constexpr int kQueries = kBackwardTile<Engine, D>;
  extern __shared__ __align__(1024) unsigned char memory[];
  T* const ks = reinterpret_cast<T*>(memory);
  T* const vs = ks + kBlockRows * D;
  T* const qs = vs + kBlockRows * D;                                       // two tiles
  T* const dos = qs + 2 * kQueries * D;                                    // two tiles
  float* const totals = reinterpret_cast<float*>(dos + 2 * kQueries * D);  // two rows
  float* const deltas = totals + 2 * kQueries;                             // two rows
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int kv_head = blockIdx.y, batch = blockIdx.z, group = shape.heads / shape.kv_heads;
  const DeviceVisible visible(shape, batch, note);
  const int first = static_cast<int>(blockIdx.x) * kBlockRows,
            last = min(shape.keys, first + kBlockRows) - 1;
  const int begin = visible.first_query(first) / kQueries * kQueries,
            end = visible.end_query(last, shape.queries);
  const int tiles = begin < end ? (end - begin + kQueries - 1) / kQueries : 0;
  const auto load_queries = [&](int step, int buffer) {
    const int head = kv_head * group + step / tiles, tile = begin + step % tiles * kQueries;
    load_tile<Engine, D, kQueries>(qs + buffer * kQueries * D, q.at(batch, head), q.row_stride,
                                   tile, shape.queries);
    load_tile<Engine, D, kQueries>(dos + buffer * kQueries * D, dout.at(batch, head),
                                   dout.row_stride, tile, shape.queries);
    if (threadIdx.x < kQueries) {
      const int query = tile + static_cast<int>(threadIdx.x);
      const bool there = query < shape.queries;
      const int64_t flat =
          (int64_t{batch} * shape.heads + head) * shape.queries + (there ? query : 0);
      copy_word(totals + buffer * kQueries + threadIdx.x, facts.log2_total + flat, there);
      copy_word(deltas + buffer * kQueries + threadIdx.x, facts.delta + flat, there);
    }
    finish_copies();
  };
  load_tile<Engine, D, kBlockRows>(ks, k.at(batch, kv_head), k.row_stride, first, shape.keys);
  load_tile<Engine, D, kBlockRows>(vs, v.at(batch, kv_head), v.row_stride, first, shape.keys);
  finish_copies();
  const int steps = tiles * group;
  if (steps > 0) load_queries(0, 0);

  float dk_acc[D / 8][4], dv_acc[D / 8][4];
  clear<D>(dk_acc);
  clear<D>(dv_acc);
  const int warp_key = first + warp * 16,
            unit_key = first + warp * 16 / Engine::kUnitRows * Engine::kUnitRows;
  const int key[2] = {warp_key + lane / 4, warp_key + lane / 4 + 8};
  int buffer = 0;
  for (int step = 0; step < steps; ++step, buffer ^= 1) {
    wait_copies<0>();
    Engine::tiles_are_there();
    __syncthreads();
    if (step + 1 < steps) load_queries(step + 1, buffer ^ 1);
    const int tile = begin + step % tiles * kQueries,
              tile_last = min(shape.queries, tile + kQueries) - 1;
    // All keys of the unit may lie behind all queries of the tile; no barrier is inside.
    if (visible.end(tile_last) <= unit_key) continue;
    const T *const q_tile = qs + buffer * kQueries * D, *const do_tile =
                                                            dos + buffer * kQueries * D;
    float scores[kQueries / 8][4], grads[kQueries / 8][4];
    Engine::template score<T, D, kBlockRows, kQueries>(scores, ks, q_tile);
    Engine::template score<T, D, kBlockRows, kQueries>(grads, vs, do_tile);
    Engine::template wait<1>(scores);
    const bool all_seen = !visible.documents && tile + kQueries <= shape.queries &&
                          warp_key >= visible.begin(tile_last) &&
                          warp_key + 16 <= visible.end(tile);
    if constexpr (Capped) cap_all(scores, rule);
    if (!all_seen) {
#pragma unroll
      for (int n = 0; n < kQueries / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int query = tile + n * 8 + lane % 4 * 2 + i % 2;
          if (query >= shape.queries || !visible.sees(query, key[i / 2])) scores[n][i] = kHidden;
        }
      }
    }
    const float *const tile_totals = totals + buffer * kQueries, *const tile_deltas =
                                                                     deltas + buffer * kQueries;
    float slopes[Capped ? kQueries / 8 : 1][4];
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float p = rule.power(scores[n][i], tile_totals[n * 8 + lane % 4 * 2 + i % 2]);
        if constexpr (Capped) slopes[n][i] = p == 0 ? 0 : rule.slope(scores[n][i]);
        scores[n][i] = p;
      }
    }
    uint32_t weights[kQueries / 16][4], more_weights[kQueries / 16][4];
    pack_tile<T>(weights, scores);
    Engine::template add<T, D, kQueries>(dv_acc, weights, do_tile);
    Engine::template wait<1>(grads);  // dV goes on
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        grads[n][i] = scores[n][i] * (grads[n][i] - tile_deltas[n * 8 + lane % 4 * 2 + i % 2]);
        if constexpr (Capped) grads[n][i] *= slopes[n][i];
      }
    }
    pack_tile<T>(more_weights, grads);
    Engine::template add<T, D, kQueries>(dk_acc, more_weights, q_tile);
    Engine::template wait<0>(dk_acc);
    Engine::template wait<0>(dv_acc);
  }
  const int64_t start = (int64_t{batch} * shape.kv_heads + kv_head) * shape.keys * D;
  store_rows<T, D>(dk + start, warp_key, shape.keys, dk_acc, shape.scale, shape.scale);
  store_rows<T, D>(dv + start, warp_key, shape.keys, dv_acc, 1, 1);
}

// ---- Launches.

bool is_hopper() { return cuda::device_facts(cuda::current_device()).major == 9; }

// Calls body.template operator()<Engine, T, D, Capped>(). Capped scores are for models that are rare; they
// take the engine that every GPU has.
template <typename Body>
void visit(const CudaCall& call, const Body& body) {
  const int64_t dim = call.input(0).shape()[3];
  const auto by_warps = [&]<typename T, bool Capped>() {
    if (dim == 32) return body.template operator()<WarpEngine, T, 32, Capped>();
    if (dim == 64) return body.template operator()<WarpEngine, T, 64, Capped>();
    body.template operator()<WarpEngine, T, 128, Capped>();
  };
  const auto with_type = [&]<typename T>() {
    if (call.attrs.number("soft_cap") > 0) return by_warps.template operator()<T, true>();
    if (dim == 32 || !is_hopper()) return by_warps.template operator()<T, false>();
    if (dim == 64) return body.template operator()<WarpgroupEngine, T, 64, false>();
    body.template operator()<WarpgroupEngine, T, 128, false>();
  };
  call.input(0).dtype == DType::bf16 ? with_type.template operator()<bf16>()
                                     : with_type.template operator()<f16>();
}

template <typename Kernel, typename... Arguments>
void launch(const CudaCall& call, Kernel* kernel, int rows, int heads, int batch,
            int64_t shared_bytes, const Arguments&... arguments) {
  if (rows == 0 || heads == 0 || batch == 0) return;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(shared_bytes));
  const dim3 grid(static_cast<unsigned>((rows + kBlockRows - 1) / kBlockRows),
                  static_cast<unsigned>(heads), static_cast<unsigned>(batch));
  kernel<<<grid, kThreads, static_cast<size_t>(shared_bytes), call.stream>>>(arguments...);
  cuda::check_launch(call.op.name);
}

// Rows of 16-byte chunks: contiguous heads, strides and addresses of whole chunks.
bool is_chunked(const Operand& x) {
  const Layout& layout = *x.layout;
  const auto whole = [](int64_t elements) { return elements % 8 == 0; };
  return layout.strides[3] == 1 && whole(layout.strides[0]) && whole(layout.strides[1]) &&
         whole(layout.strides[2]) && whole(layout.offset) &&
         reinterpret_cast<uintptr_t>(x.base) % 16 == 0;
}

}  // namespace

bool is_mma_attention(const CudaCall& call) {
  const Operand &q = call.input(0), &k = call.input(1), &v = call.input(2);
  const int64_t dim = q.shape()[3];
  const bool usual = (q.dtype == DType::bf16 || q.dtype == DType::f16) && v.shape()[3] == dim &&
                     (dim == 32 || dim == 64 || dim == 128) && q.shape()[0] <= 65535 &&
                     q.shape()[1] <= 65535 && call.attrs.number("scale") > 0;
  if (!usual || !is_chunked(q) || !is_chunked(k) || !is_chunked(v)) return false;
  if (call.inputs.size() <= 4) return true;  // forward
  const Operand& logsumexp = call.input(4);
  return is_chunked(call.input(3)) && is_chunked(call.input(5)) && logsumexp.dtype == DType::f32 &&
         logsumexp.layout->is_contiguous();
}

void attention_mma_cuda(const CudaCall& call) {
  const AttentionShape shape = attention_shape(call, 3);
  visit(call, [&]<typename Engine, typename T, int D, bool Capped>() {
    const int64_t bytes = (kBlockRows + 4 * kForwardKeys<D>)*D * 2;
    launch(call, mma_forward_kernel<Engine, T, D, Capped>, shape.queries, shape.heads, shape.batch,
           bytes, shape, ScoreRule(shape), HeadsOf<T>(call.input(0)), HeadsOf<T>(call.input(1)),
           HeadsOf<T>(call.input(2)), call.output(0).data<T>(), call.output(1).data<float>(),
           fault_note(call));
  });
}

void attention_mma_backward_cuda(const CudaCall& call) {
  const AttentionShape shape = attention_shape(call, 7);
  const int64_t rows = call.input(4).count();
  const QueryFacts facts{reinterpret_cast<float*>(call.workspace.data()),
                         reinterpret_cast<float*>(call.workspace.data()) + rows};
  visit(call, [&]<typename Engine, typename T, int D, bool Capped>() {
    const HeadsOf<T> q(call.input(0)), k(call.input(1)), v(call.input(2)), dout(call.input(5));
    if (rows > 0) {
      query_facts_kernel<T, D>
          <<<static_cast<unsigned>((rows * (D / 8) + 255) / 256), 256, 0, call.stream>>>(
              HeadsOf<T>(call.input(3)), dout, call.input(4).data<float>(), Elements(call.input(6)),
              walk_of(*call.input(6).layout), facts, shape.heads, shape.queries, rows);
      cuda::check_launch(call.op.name);
    }
    const int64_t tiles = 2 * kBlockRows + 4 * kBackwardTile<Engine, D>;
    launch(call, mma_query_grad_kernel<Engine, T, D, Capped>, shape.queries, shape.heads,
           shape.batch, tiles * D * 2, shape, ScoreRule(shape), q, k, v, dout, facts,
           call.output(0).data<T>(), fault_note(call));
    launch(call, mma_key_grad_kernel<Engine, T, D, Capped>, shape.keys, shape.kv_heads, shape.batch,
           tiles * D * 2 + 4 * kBackwardTile<Engine, D> * 4, shape, ScoreRule(shape), q, k, v, dout,
           facts, call.output(1).data<T>(), call.output(2).data<T>(), fault_note(call));
  });
}

}  // namespace brrr
