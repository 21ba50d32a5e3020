// Attention backward of Hopper for heads of 64 in one kernel: five products instead of the seven of two kernels.
//
// A block of threads has a whole (batch, kv head) at a time. It walks blocks of 128 keys in order, and for each the
// tiles of 64 queries that see it: a step. dK and dV of the keys stay in registers. dQ of a tile grows over the blocks
// of keys; between two of them its part sums lie in memory that only the thread that made them reads: no atomics, one
// order of additions, and 256 KiB a multiprocessor for 1024 queries, which stay in the L2 cache.
//
// dQ of a step needs dS of both warpgroups. It is multiplied one step later, so that one barrier a step serves this and
// the tiles that arrive. Groups of products of a step, in order: S, dP, dQ (of the step before), dV, dK.
#include "brrr/kernels/cuda/attention/attention_fused_grad.h"
#include "brrr/kernels/cuda/attention/attention_mma.cuh"
#include "brrr/kernels/cuda/attention/attention_steps.cuh"

namespace brrr::kernels {
namespace {

using namespace mma;

using fused_grad::kDim, fused_grad::kQueries;
static_assert(kQueries == kStepQueries);
constexpr int kGroupThreads = 128;
constexpr int kAhead = 2;  // steps whose tiles are on their way
constexpr int kBuffers =
    kAhead + 2;  // one is multiplied, and one may still be by the other warpgroup
constexpr int kKeyTile = kBlockRows * kDim, kQueryTile = kQueries * kDim;
constexpr int64_t kSharedBytes =
    (kBuffers * 2 * (kKeyTile + kQueryTile) + 2 * kBlockRows * kQueries) * 2 +
    kBuffers * 2 * kQueries * 4;
// Zeros for queries that see nothing, and for keys that nothing sees: no step comes to them.
template <typename T>
__device__ void clear_unseen(const AttentionShape& shape, const cuda::FaultNote& note,
                             const HeadsOf<T>& dq, const HeadsOf<T>& dk, const HeadsOf<T>& dv) {
  const int group = shape.heads / shape.kv_heads;
  const auto clear_rows = [](const HeadsOf<T>& heads, int batch, int head, int first, int count) {
    T* const rows = heads.at(batch, head) + int64_t{first} * heads.row_stride;
    for (int i = threadIdx.x; i < count * kDim / 2; i += kThreads)
      *reinterpret_cast<uint32_t*>(rows + i / (kDim / 2) * int64_t{heads.row_stride} +
                                   i % (kDim / 2) * 2) = 0;
  };
  for (int unit = blockIdx.x; unit < shape.batch * shape.kv_heads; unit += gridDim.x) {
    const int batch = unit / shape.kv_heads, kv_head = unit % shape.kv_heads;
    const DeviceVisible visible(shape, batch, note);
    for (int first = 0; first < shape.keys; first += kBlockRows) {
      const TileRange tiles(shape, visible, first / kBlockRows);
      if (tiles.begin < tiles.end) continue;
      const int count = min(kBlockRows, shape.keys - first);
      clear_rows(dk, batch, kv_head, first, count);
      clear_rows(dv, batch, kv_head, first, count);
    }
    for (int first = 0; first < shape.queries; first += kQueries) {
      const int count = min(kQueries, shape.queries - first);
      if (visible.begin(first) < visible.end(first + count - 1)) continue;
      for (int head = 0; head < group; ++head)
        clear_rows(dq, batch, kv_head * group + head, first, count);
    }
  }
}

// Part sums of dQ: 64 rows by 64 columns of a tile, of which a warpgroup has 32, a thread 16.
struct QueryGrad {
  float4* parts;  // of this thread: element n is kThreads float4 away from the one before
  int batch, head, tile;
  int key_buffer, score_buffer;
  bool is_first, is_last;  // of the blocks of keys that the tile sees

  __device__ void load(float4 (&before)[4]) const {
#pragma unroll
    for (int n = 0; n < 4; ++n) before[n] = is_first ? float4{0, 0, 0, 0} : parts[n * kThreads];
  }
  template <typename T>
  __device__ void store(const float4 (&before)[4], const float (&product)[4][4],
                        const HeadsOf<T>& dq, int queries, float scale) const {
    float4 acc[4];
#pragma unroll
    for (int n = 0; n < 4; ++n)
      acc[n] = {before[n].x + product[n][0], before[n].y + product[n][1],
                before[n].z + product[n][2], before[n].w + product[n][3]};
    if (!is_last) {
#pragma unroll
      for (int n = 0; n < 4; ++n) parts[n * kThreads] = acc[n];
      return;
    }
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4,
              col = threadIdx.x / kGroupThreads * 32 + lane % 4 * 2,
              rows = queries - tile * kQueries;
    T* const start = dq.at(batch, head) + int64_t{tile * kQueries + row} * dq.row_stride + col;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      T* const at = start + n * 8;
      if (row < rows)
        *reinterpret_cast<uint32_t*>(at) = pack<T>(acc[n].x * scale, acc[n].y * scale);
      if (row + 8 < rows)
        *reinterpret_cast<uint32_t*>(at + 8 * dq.row_stride) =
            pack<T>(acc[n].z * scale, acc[n].w * scale);
    }
  }
};

// A barrier of the threads of one warpgroup; 0 is that of the block.
__device__ inline void sync_group(int group) {
  asm volatile("bar.sync %0, 128;\n" ::"r"(group + 1) : "memory");
}

template <typename T, bool HasDocuments>
__global__ void __launch_bounds__(kThreads, 1)
    fused_grad_kernel(const __grid_constant__ AttentionShape shape, ScoreRule rule, HeadsOf<T> q,
                      HeadsOf<T> k, HeadsOf<T> v, HeadsOf<T> dout, QueryFacts facts, float4* parts,
                      const __grid_constant__ HeadsOf<T> dq, const __grid_constant__ HeadsOf<T> dk,
                      const __grid_constant__ HeadsOf<T> dv, cuda::FaultNote note) {
  using Engine = WarpgroupEngine;
  extern __shared__ __align__(1024) unsigned char memory[];
  T* const ks = reinterpret_cast<T*>(memory);
  T* const vs = ks + kBuffers * kKeyTile;
  T* const qs = vs + kBuffers * kKeyTile;
  T* const dos = qs + kBuffers * kQueryTile;
  T* const dss = dos + kBuffers * kQueryTile;  // two tiles: [key][query]
  float* const totals = reinterpret_cast<float*>(dss + 2 * kBlockRows * kQueries);
  float* const deltas = totals + kBuffers * kQueries;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int query_tiles = (shape.queries + kQueries - 1) / kQueries,
            group = shape.heads / shape.kv_heads;
  clear_unseen(shape, note, dq, dk, dv);

  StepWalk coming(shape, note), now(shape, note);
  const auto load_step = [&](int step) {
    if (coming.there(shape)) {
      const int batch = coming.batch, head = coming.query_head(group), kv_head = coming.kv_head;
      if (coming.is_first_of_block()) {
        const int first = coming.key_block * kBlockRows, buffer = coming.entered % kBuffers;
        load_tile<Engine, kDim, kBlockRows, kThreads>(ks + buffer * kKeyTile, k.at(batch, kv_head),
                                                      k.row_stride, first, shape.keys, kDim);
        load_tile<Engine, kDim, kBlockRows, kThreads>(vs + buffer * kKeyTile, v.at(batch, kv_head),
                                                      v.row_stride, first, shape.keys, kDim);
      }
      const int buffer = step % kBuffers, first = coming.tile * kQueries;
      load_tile<Engine, kDim, kQueries, kThreads>(qs + buffer * kQueryTile, q.at(batch, head),
                                                  q.row_stride, first, shape.queries, kDim);
      load_tile<Engine, kDim, kQueries, kThreads>(dos + buffer * kQueryTile, dout.at(batch, head),
                                                  dout.row_stride, first, shape.queries, kDim);
      load_facts<kQueries>(totals + buffer * kQueries, deltas + buffer * kQueries, facts, shape,
                           batch, head, first);
      coming.advance(shape, note, group);
    }
    finish_copies();
  };
#pragma unroll
  for (int step = 0; step < kAhead; ++step) load_step(step);

  const int64_t parts_of_block = int64_t{group} * query_tiles * 4 * kThreads;
  float4* const my_parts = parts + blockIdx.x * parts_of_block + threadIdx.x;
  float dk_acc[kDim / 8][4], dv_acc[kDim / 8][4], dq_product[4][4];
  float4 dq_before[4];
  QueryGrad late{};  // dQ of the step before
  const auto multiply_late = [&] {
    Engine::multiply_rows<T, kBlockRows>(
        dq_product, dss + late.score_buffer * kBlockRows * kQueries,
        ks + late.key_buffer * kKeyTile + Engine::group_index() * 32);
    late.load(dq_before);
  };
  bool any = false;
  for (int step = 0; now.there(shape); ++step, now.advance(shape, note, group)) {
    wait_copies<kAhead - 1>();
    Engine::tiles_are_there();
    __syncthreads();
    const int buffer = step % kBuffers, key_buffer = now.entered % kBuffers;
    const T *const k_tile = ks + key_buffer * kKeyTile, *const v_tile = vs + key_buffer * kKeyTile;
    const T *const q_tile = qs + buffer * kQueryTile, *const do_tile = dos + buffer * kQueryTile;
    float scores[kQueries / 8][4], grads[kQueries / 8][4];
    Engine::score<T, kDim, kBlockRows, kQueries>(scores, k_tile, q_tile);
    Engine::score<T, kDim, kBlockRows, kQueries>(grads, v_tile, do_tile);
    any ? multiply_late() : Engine::add_nothing();
    load_step(step + kAhead);  // while they multiply
    Engine::wait<2>(scores);

    const int tile = now.tile * kQueries, tile_last = min(shape.queries, tile + kQueries) - 1;
    const int warp_key = now.key_block * kBlockRows + warp * 16;
    DeviceVisible visible(shape, now.batch, now.length);
    if constexpr (!HasDocuments) visible.documents = nullptr;
    hide_queries(scores, visible, shape.queries, warp_key, tile);
    const float *const tile_totals = totals + buffer * kQueries + lane % 4 * 2, *const tile_deltas =
                                                                                    deltas +
                                                                                    buffer *
                                                                                        kQueries +
                                                                                    lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n) {
      const float2 total = *reinterpret_cast<const float2*>(tile_totals + n * 8);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        scores[n][i] = rule.power(scores[n][i], i % 2 == 0 ? total.x : total.y);
    }
    uint32_t weights[kQueries / 16][4], more_weights[kQueries / 16][4];
    pack_tile<T>(weights, scores);
    Engine::add<T, kDim, kQueries>(dv_acc, weights, do_tile, now.is_first_of_block());
    Engine::wait<2>(grads);
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n) {
      const float2 delta = *reinterpret_cast<const float2*>(tile_deltas + n * 8);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        grads[n][i] = scores[n][i] * (grads[n][i] - (i % 2 == 0 ? delta.x : delta.y));
    }
    pack_tile<T>(more_weights, grads);
    T* const ds_tile = dss + step % 2 * kBlockRows * kQueries;
#pragma unroll
    for (int c = 0; c < kQueries / 16; ++c)
      store_matrices(
          ds_tile + Engine::offset<kQueries, kBlockRows>(warp * 16 + lane % 16, c * 2 + lane / 16),
          more_weights[c]);
    Engine::tiles_are_there();
    Engine::add<T, kDim, kQueries>(dk_acc, more_weights, q_tile, now.is_first_of_block());
    Engine::wait<2>(dq_product);
    if (any) late.store(dq_before, dq_product, dq, shape.queries, shape.scale);
    any = true;
    late = {my_parts + (now.head * query_tiles + now.tile) * 4 * kThreads,
            now.batch,
            now.query_head(group),
            now.tile,
            key_buffer,
            step % 2,
            visible.begin(tile) / kBlockRows == now.key_block,
            (visible.end(tile_last) - 1) / kBlockRows == now.key_block};
    if (now.is_last_of_block(group)) {
      Engine::wait<0>(dk_acc);
      Engine::wait<0>(dv_acc);
      // V's rows of this warpgroup are not needed any more.
      T* const stage = vs + key_buffer * kKeyTile;
      sync_group(Engine::group_index());
      store_rows_staged<Engine, kBlockRows>(stage, dk.at(now.batch, now.kv_head), dk.row_stride,
                                            warp_key, shape.keys, dk_acc, shape.scale);
      store_rows_staged<Engine, kBlockRows>(stage, dv.at(now.batch, now.kv_head), dv.row_stride,
                                            warp_key, shape.keys, dv_acc, 1);
    }
  }
  if (!any) return;
  __syncthreads();
  multiply_late();
  Engine::wait<0>(dq_product);
  late.store(dq_before, dq_product, dq, shape.queries, shape.scale);
}

}  // namespace

void mma::run_fused_grad(const CudaCall& call, const AttentionShape& shape, const QueryFacts& facts,
                         void* parts) {
  const auto run = [&]<typename T, bool HasDocuments>() {
    const auto kernel = fused_grad_kernel<T, HasDocuments>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(kSharedBytes));
    const auto blocks = static_cast<unsigned>(
        fused_grad::grid_blocks(int64_t{shape.batch} * shape.kv_heads, call.chip));
    kernel<<<blocks, kThreads, kSharedBytes, call.stream>>>(
        shape, ScoreRule(shape), HeadsOf<T>(call.input(0)), HeadsOf<T>(call.input(1)),
        HeadsOf<T>(call.input(2)), HeadsOf<T>(call.input(5)), facts, static_cast<float4*>(parts),
        HeadsOf<T>(call.output(0)), HeadsOf<T>(call.output(1)), HeadsOf<T>(call.output(2)),
        fault_note(call));
    cuda::check_launch(call.op.name);
  };
  const auto with_type = [&]<typename T>() {
    shape.documents ? run.template operator()<T, true>() : run.template operator()<T, false>();
  };
  call.input(0).dtype == DType::bf16 ? with_type.template operator()<bf16>()
                                     : with_type.template operator()<f16>();
}

}  // namespace brrr::kernels
