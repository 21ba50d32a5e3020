// Attention backward on tensor cores: what it needs of each query, and dQ.
#include "brrr/kernels/cuda/attention/attention_fused_grad.h"
#include "brrr/kernels/cuda/attention/attention_mma.cuh"

namespace brrr::kernels {
namespace {

using namespace mma;

// Lanes: threads of a row, 16 bytes each; those behind the end of the row have zeros.
template <typename T, int Lanes>
__global__ void __launch_bounds__(256)
    query_facts_kernel(HeadsOf<T> out, HeadsOf<T> dout, const float* logsumexp, Elements dlogsumexp,
                       Walk dlogsumexp_walk, QueryFacts facts, int heads, int queries, int dim,
                       int64_t rows) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  const int64_t flat = thread / Lanes, safe = min(flat, rows - 1);
  const int chunk = static_cast<int>(thread % Lanes);
  const int row = static_cast<int>(safe % queries), head = static_cast<int>(safe / queries % heads),
            batch = static_cast<int>(safe / queries / heads);
  uint4 a{}, b{};
  if (chunk * 8 < dim) {
    a = *reinterpret_cast<const uint4*>(out.at(batch, head) + row * out.row_stride + chunk * 8);
    b = *reinterpret_cast<const uint4*>(dout.at(batch, head) + row * dout.row_stride + chunk * 8);
  }
  const T *x = reinterpret_cast<const T*>(&a), *y = reinterpret_cast<const T*>(&b);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum = fmaf(x[i].to_float(), y[i].to_float(), sum);
  for (int distance = Lanes / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  if (chunk != 0 || flat >= rows) return;
  const float total = logsumexp[flat];
  facts.log2_total[flat] = total == kHidden ? 0 : total * kLog2E;
  facts.delta[flat] = sum - dlogsumexp.load<float>(dlogsumexp_walk.position(flat));
}

template <typename Engine, typename T, int D, bool Capped,
          typename Tiles = BackwardTiles<Engine, D, Grads::queries>>
__global__ void __launch_bounds__(Tiles::kThreads, Tiles::kBlocks)
    mma_query_grad_kernel(AttentionShape shape, ScoreRule rule, HeadsOf<T> q, HeadsOf<T> k,
                          HeadsOf<T> v, HeadsOf<T> dout, QueryFacts facts, HeadsOf<T> dq,
                          cuda::FaultNote note) {
  if (!is_launched<Engine, D, Capped>()) return __trap();
  constexpr int kRows = Tiles::kRows, kKeys = Tiles::kTile, kSpan = kRowSpan<Engine, D>;
  extern __shared__ __align__(1024) unsigned char memory[];
  T* const qs = reinterpret_cast<T*>(memory);
  T* const dos = qs + kRows * kSpan;
  T* const ks = dos + kRows * kSpan;     // two tiles
  T* const vs = ks + 2 * kKeys * kSpan;  // two tiles
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int head = blockIdx.y, batch = blockIdx.z, dim = shape.head_dim;
  const int kv_head = head / (shape.heads / shape.kv_heads);
  const DeviceVisible visible(shape, batch, note);
  const int first = row_block(shape.causal) * kRows, last = min(shape.queries, first + kRows) - 1;
  const T *const k_head = k.at(batch, kv_head), *const v_head = v.at(batch, kv_head);
  const int begin = visible.begin(first) / kKeys * kKeys, end = visible.end(last);
  const auto load_keys = [&](int tile, int buffer) {
    load_tile<Engine, D, kKeys, Tiles::kThreads>(ks + buffer * kKeys * kSpan, k_head, k.row_stride,
                                                 tile, shape.keys, dim);
    load_tile<Engine, D, kKeys, Tiles::kThreads>(vs + buffer * kKeys * kSpan, v_head, v.row_stride,
                                                 tile, shape.keys, dim);
    finish_copies();
  };
  load_tile<Engine, D, kRows, Tiles::kThreads>(qs, q.at(batch, head), q.row_stride, first,
                                               shape.queries, dim);
  load_tile<Engine, D, kRows, Tiles::kThreads>(dos, dout.at(batch, head), dout.row_stride, first,
                                               shape.queries, dim);
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
    const T *const k_tile = ks + buffer * kKeys * kSpan, *const v_tile =
                                                             vs + buffer * kKeys * kSpan;
    float scores[kKeys / 8][4], grads[kKeys / 8][4];
    Engine::template score<T, D, kRows, kKeys>(scores, qs, k_tile);
    Engine::template score<T, D, kRows, kKeys>(grads, dos, v_tile);
    Engine::template wait<1>(scores);
    if constexpr (Capped) cap_all(scores, rule);
    hide_keys(scores, visible, shape.queries, first, last, first + warp * 16, tile);
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
  store_rows<T, D>(dq.at(batch, head), dq.row_stride, first + warp * 16, shape.queries, dim, acc,
                   shape.scale, shape.scale);
}

}  // namespace

void attention_mma_backward_cuda(const CudaCall& call) {
  const AttentionShape shape = attention_shape(call, 7);
  const int64_t rows = call.input(4).count();
  const bool is_fused = fused_grad::takes(call);
  // Part sums come first: they are read 16 bytes at a time.
  float* const facts_start = reinterpret_cast<float*>(
      call.workspace.data() + (is_fused ? fused_grad::workspace_bytes(call) : 0));
  const QueryFacts facts{facts_start, facts_start + rows};
  visit_kernels(call, [&]<typename Engine, typename T, int D, bool Capped>() {
    const HeadsOf<T> q(call.input(0)), k(call.input(1)), v(call.input(2)), dout(call.input(5));
    if (rows > 0) {
      constexpr int kLanes = D <= 32 ? 4 : D <= 64 ? 8 : D <= 128 ? 16 : 32;
      query_facts_kernel<T, kLanes>
          <<<static_cast<unsigned>((rows * kLanes + 255) / 256), 256, 0, call.stream>>>(
              HeadsOf<T>(call.input(3)), dout, call.input(4).data<float>(), Elements(call.input(6)),
              walk_of(*call.input(6).layout), facts, shape.heads, shape.queries, shape.head_dim,
              rows);
      cuda::check_launch(call.op.name);
    }
    if (is_fused) return run_fused_grad(call, shape, facts, call.workspace.data());
    launch<BackwardTiles<Engine, D, Grads::queries>>(
        call, mma_query_grad_kernel<Engine, T, D, Capped>, shape.queries, shape.heads, shape.batch,
        shape, ScoreRule(shape), q, k, v, dout, facts, HeadsOf<T>(call.output(0)),
        fault_note(call));
  });
  if (!is_fused) run_key_grads(call, shape, facts);
}

}  // namespace brrr::kernels
