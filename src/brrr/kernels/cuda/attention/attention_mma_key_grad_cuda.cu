// Attention backward on tensor cores: dK and dV. A block has some keys of a kv head and walks the queries of its
// group of heads in order.
#include "brrr/kernels/cuda/attention/attention_mma.cuh"

namespace brrr::kernels {
namespace {

using namespace mma;

template <typename Engine, typename T, int D, bool Capped, Grads Wanted,
          typename Tiles = BackwardTiles<Engine, D, Wanted>>
__global__ void __launch_bounds__(Tiles::kThreads, Tiles::kBlocks)
    mma_key_grad_kernel(AttentionShape shape, ScoreRule rule, HeadsOf<T> q, HeadsOf<T> k,
                        HeadsOf<T> v, HeadsOf<T> dout, QueryFacts facts, HeadsOf<T> dk,
                        HeadsOf<T> dv, cuda::FaultNote note) {
  if (!is_launched<Engine, D, Capped>()) return __trap();
  constexpr int kRows = Tiles::kRows, kQueries = Tiles::kTile, kSpan = kRowSpan<Engine, D>;
  constexpr bool kWantsKeys = Wanted != Grads::values, kWantsValues = Wanted != Grads::keys;
  extern __shared__ __align__(1024) unsigned char memory[];
  T* const ks = reinterpret_cast<T*>(memory);
  T* const vs = ks + kRows * kSpan;
  T* const qs = kWantsKeys ? vs + kRows * kSpan : vs;                          // two tiles
  T* const dos = qs + 2 * kQueries * kSpan;                                    // two tiles
  float* const totals = reinterpret_cast<float*>(dos + 2 * kQueries * kSpan);  // two rows
  float* const deltas = totals + 2 * kQueries;                                 // two rows
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int kv_head = blockIdx.y, batch = blockIdx.z, group = shape.heads / shape.kv_heads,
            dim = shape.head_dim;
  const DeviceVisible visible(shape, batch, note);
  const int first = static_cast<int>(blockIdx.x) * kRows, last = min(shape.keys, first + kRows) - 1;
  const int begin = visible.first_query(first) / kQueries * kQueries,
            end = visible.end_query(last, shape.queries);
  const int tiles = begin < end ? (end - begin + kQueries - 1) / kQueries : 0;
  const auto load_queries = [&](int step, int buffer) {
    const int head = kv_head * group + step / tiles, tile = begin + step % tiles * kQueries;
    load_tile<Engine, D, kQueries, Tiles::kThreads>(
        qs + buffer * kQueries * kSpan, q.at(batch, head), q.row_stride, tile, shape.queries, dim);
    load_tile<Engine, D, kQueries, Tiles::kThreads>(dos + buffer * kQueries * kSpan,
                                                    dout.at(batch, head), dout.row_stride, tile,
                                                    shape.queries, dim);
    load_facts<kQueries>(totals + buffer * kQueries, deltas + buffer * kQueries, facts, shape,
                         batch, head, tile);
    finish_copies();
  };
  load_tile<Engine, D, kRows, Tiles::kThreads>(ks, k.at(batch, kv_head), k.row_stride, first,
                                               shape.keys, dim);
  if constexpr (kWantsKeys)
    load_tile<Engine, D, kRows, Tiles::kThreads>(vs, v.at(batch, kv_head), v.row_stride, first,
                                                 shape.keys, dim);
  finish_copies();
  const int steps = tiles * group;
  if (steps > 0) load_queries(0, 0);

  float dk_acc[kWantsKeys ? D / 8 : 1][4], dv_acc[kWantsValues ? D / 8 : 1][4];
  if constexpr (kWantsKeys) clear<D>(dk_acc);
  if constexpr (kWantsValues) clear<D>(dv_acc);
  const int warp_key = first + warp * 16,
            unit_key = first + warp * 16 / Engine::kUnitRows * Engine::kUnitRows;
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
    const T *const q_tile = qs + buffer * kQueries * kSpan, *const do_tile =
                                                                dos + buffer * kQueries * kSpan;
    float scores[kQueries / 8][4], grads[kWantsKeys ? kQueries / 8 : 1][4];
    Engine::template score<T, D, kRows, kQueries>(scores, ks, q_tile);
    if constexpr (kWantsKeys) Engine::template score<T, D, kRows, kQueries>(grads, vs, do_tile);
    Engine::template wait<kWantsKeys ? 1 : 0>(scores);
    if constexpr (Capped) cap_all(scores, rule);
    hide_queries(scores, visible, shape.queries, warp_key, tile);
    const float *const tile_totals = totals + buffer * kQueries, *const tile_deltas =
                                                                     deltas + buffer * kQueries;
    constexpr bool kWantsSlopes = Capped && kWantsKeys;
    float slopes[kWantsSlopes ? kQueries / 8 : 1][4];
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float p = rule.power(scores[n][i], tile_totals[n * 8 + lane % 4 * 2 + i % 2]);
        if constexpr (kWantsSlopes) slopes[n][i] = p == 0 ? 0 : rule.slope(scores[n][i]);
        scores[n][i] = p;
      }
    }
    uint32_t weights[kQueries / 16][4], more_weights[kQueries / 16][4];
    if constexpr (kWantsValues) {
      pack_tile<T>(weights, scores);
      Engine::template add<T, D, kQueries>(dv_acc, weights, do_tile);
    }
    if constexpr (kWantsKeys) {
      Engine::template wait<kWantsValues ? 1 : 0>(grads);  // dV goes on
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
    }
    if constexpr (kWantsValues) Engine::template wait<0>(dv_acc);
  }
  if constexpr (kWantsKeys)
    store_rows<T, D>(dk.at(batch, kv_head), dk.row_stride, warp_key, shape.keys, dim, dk_acc,
                     shape.scale, shape.scale);
  if constexpr (kWantsValues)
    store_rows<T, D>(dv.at(batch, kv_head), dv.row_stride, warp_key, shape.keys, dim, dv_acc, 1, 1);
}

}  // namespace

void mma::run_key_grads(const CudaCall& call, const AttentionShape& shape,
                        const QueryFacts& facts) {
  visit_kernels(call, [&]<typename Engine, typename T, int D, bool Capped>() {
    const auto run = [&]<Grads Wanted>() {
      launch<BackwardTiles<Engine, D, Wanted>>(
          call, mma_key_grad_kernel<Engine, T, D, Capped, Wanted>, shape.keys, shape.kv_heads,
          shape.batch, shape, ScoreRule(shape), HeadsOf<T>(call.input(0)),
          HeadsOf<T>(call.input(1)), HeadsOf<T>(call.input(2)), HeadsOf<T>(call.input(5)), facts,
          HeadsOf<T>(call.output(1)), HeadsOf<T>(call.output(2)), fault_note(call));
    };
    if constexpr (D <= 128) {
      run.template operator()<Grads::keys_and_values>();
    } else {
      run.template operator()<Grads::values>();
      run.template operator()<Grads::keys>();
    }
  });
}

}  // namespace brrr::kernels
