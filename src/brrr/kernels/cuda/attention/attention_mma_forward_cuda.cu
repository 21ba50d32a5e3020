// Attention forward on tensor cores, and which calls they take.
#include "brrr/kernels/cuda/attention/attention_mma.cuh"

namespace brrr::kernels {
namespace {

using namespace mma;

template <typename Engine, typename T, int D, bool Capped, typename Tiles = ForwardTiles<Engine, D>>
__global__ void __launch_bounds__(Tiles::kThreads, Tiles::kBlocks)
    mma_forward_kernel(AttentionShape shape, ScoreRule rule, HeadsOf<T> q, HeadsOf<T> k,
                       HeadsOf<T> v, HeadsOf<T> out, float* logsumexp, cuda::FaultNote note) {
  if (!is_launched<Engine, D, Capped>()) return __trap();
  constexpr int kRows = Tiles::kRows, kKeys = Tiles::kKeys, kSpan = kRowSpan<Engine, D>;
  extern __shared__ __align__(1024) unsigned char memory[];
  T* const qs = reinterpret_cast<T*>(memory);
  T* const ks = qs + kRows * kSpan;      // two tiles
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
    Engine::template score<T, D, kRows, kKeys>(scores, qs, ks + buffer * kKeys * kSpan);
    Engine::template wait<0>(scores);
    if constexpr (Capped) cap_all(scores, rule);
    hide_keys(scores, visible, shape.queries, first, last, first + warp * 16, tile);
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
    Engine::template add<T, D, kKeys>(acc, weights, vs + buffer * kKeys * kSpan);
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
  store_rows<T, D>(out.at(batch, head), out.row_stride, first + warp * 16, shape.queries, dim, acc,
                   inverse[0], inverse[1]);
}

// Rows of 16-byte chunks: contiguous heads, strides and addresses of whole chunks.
bool is_chunked(const Operand& x) {
  return is_chunked_head(*x.layout) && reinterpret_cast<uintptr_t>(x.base) % 16 == 0;
}

}  // namespace

bool is_mma_attention(const CudaCall& call) {
  const Operand &q = call.input(0), &k = call.input(1), &v = call.input(2);
  const TensorCoreUse use = attention_tensor_cores({.q = *q.layout,
                                                    .k = *k.layout,
                                                    .v = *v.layout,
                                                    .dtype = q.dtype,
                                                    .scale = call.attrs.number("scale")});
  if (use.how == TensorCores::none || !is_chunked(q) || !is_chunked(k) || !is_chunked(v))
    return false;
  if (call.inputs.size() <= 4) return is_chunked(call.output(0));  // forward
  if (!std::all_of(call.outputs.begin(), call.outputs.end(), is_chunked)) return false;
  const Operand& logsumexp = call.input(4);
  return is_chunked(call.input(3)) && is_chunked(call.input(5)) && logsumexp.dtype == DType::f32 &&
         logsumexp.layout->is_contiguous();
}

void attention_mma_cuda(const CudaCall& call) {
  const AttentionShape shape = attention_shape(call, 3);
  visit_kernels(call, [&]<typename Engine, typename T, int D, bool Capped>() {
    launch<ForwardTiles<Engine, D>>(call, mma_forward_kernel<Engine, T, D, Capped>, shape.queries,
                                    shape.heads, shape.batch, shape, ScoreRule(shape),
                                    HeadsOf<T>(call.input(0)), HeadsOf<T>(call.input(1)),
                                    HeadsOf<T>(call.input(2)), HeadsOf<T>(call.output(0)),
                                    call.output(1).data<float>(), fault_note(call));
  });
}

}  // namespace brrr::kernels
