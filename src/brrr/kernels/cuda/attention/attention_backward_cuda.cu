// Attention backward in plain arithmetic. delta = sum(dO * O) - d logsumexp of a query; then
//   dS = P (dO V^T - delta) f' scale,   dQ = dS K,   dK = dS^T Q,   dV = P^T dO
#include "brrr/kernels/cuda/attention/attention_plain.cuh"

namespace brrr::kernels {
namespace {

using namespace plain_attention;

template <typename C>
struct RowDelta {
  HeadMatrix out, dout, dlogsumexp;
  C* delta;
  int heads, queries, value_dim;
  __device__ void operator()(int64_t flat) const {
    const int row = static_cast<int>(flat % queries),
              head = static_cast<int>(flat / queries % heads),
              batch = static_cast<int>(flat / queries / heads);
    C sum = 0;
    for (int d = 0; d < value_dim; ++d)
      sum = fma(dout.at<C>(batch, head, row, d), out.at<C>(batch, head, row, d), sum);
    delta[flat] = sum - dlogsumexp.at<C>(batch, head, row, 0);
  }
};

struct BackwardOperands {
  HeadMatrix q, k, v, dout, logsumexp;
  const void* delta;
};

// P and dS of one pair.
template <typename C>
struct PairGrad {
  C probability, dscore;
};
template <typename C>
__device__ PairGrad<C> pair_grad(const AttentionShape& shape, bool seen, C product, C logsumexp,
                                 C dprobability, C delta) {
  const C hidden = -std::numeric_limits<C>::infinity();
  if (!seen) return {C(0), C(0)};
  const Score<C> score = score_of(shape, product);
  const C p = exp(score.value - (logsumexp == hidden ? C(0) : logsumexp));
  return {p, p * (dprobability - delta) * score.slope * static_cast<C>(shape.wide_scale)};
}

template <typename C, int Columns>
__global__ void __launch_bounds__(kWarps * 32)
    query_grad_kernel(AttentionShape shape, BackwardOperands x, HeadMatrix dq,
                      cuda::FaultNote note) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int dim = shape.head_dim, value_dim = shape.value_dim;
  C* const qs = reinterpret_cast<C*>(memory);
  C* const dos = qs + kRows * dim;
  C* const ks = dos + kRows * value_dim;
  C* const vs = ks + kTile * (dim + 1);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Unit unit((shape.queries + kRows - 1) / kRows, shape.heads);
  const int first = unit.block * kRows, last = min(shape.queries, first + kRows) - 1;
  const int kv_head = unit.head / (shape.heads / shape.kv_heads);
  const DeviceVisible visible(shape, unit.batch, note);
  load_rows(qs, dim, x.q, unit.batch, unit.head, first, kRows, shape.queries, dim);
  load_rows(dos, value_dim, x.dout, unit.batch, unit.head, first, kRows, shape.queries, value_dim);
  const int64_t flat_first =
      (static_cast<int64_t>(unit.batch) * shape.heads + unit.head) * shape.queries + first;

  C acc[kRowsPerWarp][Columns];
#pragma unroll
  for (int r = 0; r < kRowsPerWarp; ++r) {
#pragma unroll
    for (int c = 0; c < Columns; ++c) acc[r][c] = 0;
  }
  const int end = visible.end(last);
  for (int tile = visible.begin(first) / kTile * kTile; tile < end; tile += kTile) {
    __syncthreads();
    load_rows(ks, dim + 1, x.k, unit.batch, kv_head, tile, kTile, shape.keys, dim);
    load_rows(vs, value_dim + 1, x.v, unit.batch, kv_head, tile, kTile, shape.keys, value_dim);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kRowsPerWarp; ++r) {
      const int row = warp * kRowsPerWarp + r;
      if (first + row >= shape.queries) continue;  // the same for all lanes
      const bool seen = visible.sees(first + row, tile + lane);
      const PairGrad<C> pair =
          pair_grad(shape, seen, dot(qs + row * dim, ks + lane * (dim + 1), dim),
                    x.logsumexp.at<C>(unit.batch, unit.head, first + row, 0),
                    dot(dos + row * value_dim, vs + lane * (value_dim + 1), value_dim),
                    static_cast<const C*>(x.delta)[flat_first + row]);
      add_rows(acc[r], pair.dscore, ks, dim + 1, dim);
    }
  }
#pragma unroll
  for (int r = 0; r < kRowsPerWarp; ++r) {
    const int row = warp * kRowsPerWarp + r;
    if (first + row >= shape.queries) continue;
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
      const int col = lane + 32 * c;
      if (col < dim) dq.store<C>(unit.batch, unit.head, first + row, col, acc[r][c]);
    }
  }
}

// A block has 16 keys of one kv head and walks the queries of all heads that share it, in order.
template <typename C, int Columns>
__global__ void __launch_bounds__(kWarps * 32)
    key_grad_kernel(AttentionShape shape, BackwardOperands x, HeadMatrix dk, HeadMatrix dv,
                    cuda::FaultNote note) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int dim = shape.head_dim, value_dim = shape.value_dim;
  C* const ks = reinterpret_cast<C*>(memory);
  C* const vs = ks + kRows * dim;
  C* const qs = vs + kRows * value_dim;
  C* const dos = qs + kTile * (dim + 1);
  C* const logs = dos + kTile * (value_dim + 1);
  C* const deltas = logs + kTile;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Unit unit((shape.keys + kRows - 1) / kRows, shape.kv_heads);
  const int first = unit.block * kRows, last = min(shape.keys, first + kRows) - 1;
  const int group = shape.heads / shape.kv_heads;
  const DeviceVisible visible(shape, unit.batch, note);
  load_rows(ks, dim, x.k, unit.batch, unit.head, first, kRows, shape.keys, dim);
  load_rows(vs, value_dim, x.v, unit.batch, unit.head, first, kRows, shape.keys, value_dim);

  C dk_acc[kRowsPerWarp][Columns], dv_acc[kRowsPerWarp][Columns];
#pragma unroll
  for (int r = 0; r < kRowsPerWarp; ++r) {
#pragma unroll
    for (int c = 0; c < Columns; ++c) dk_acc[r][c] = dv_acc[r][c] = 0;
  }
  const int query_end = visible.end_query(last, shape.queries);
  for (int head = unit.head * group; head < (unit.head + 1) * group; ++head) {
    const int64_t flat = (static_cast<int64_t>(unit.batch) * shape.heads + head) * shape.queries;
    for (int tile = visible.first_query(first) / kTile * kTile; tile < query_end; tile += kTile) {
      __syncthreads();
      load_rows(qs, dim + 1, x.q, unit.batch, head, tile, kTile, shape.queries, dim);
      load_rows(dos, value_dim + 1, x.dout, unit.batch, head, tile, kTile, shape.queries,
                value_dim);
      if (threadIdx.x < kTile) {
        const int query = tile + lane;
        const bool there = query < shape.queries;
        logs[lane] = there ? x.logsumexp.at<C>(unit.batch, head, query, 0) : C(0);
        deltas[lane] = there ? static_cast<const C*>(x.delta)[flat + query] : C(0);
      }
      __syncthreads();
#pragma unroll
      for (int r = 0; r < kRowsPerWarp; ++r) {
        const int row = warp * kRowsPerWarp + r;
        const bool seen = tile + lane < shape.queries && first + row < shape.keys &&
                          visible.sees(tile + lane, first + row);
        const PairGrad<C> pair = pair_grad(
            shape, seen, dot(ks + row * dim, qs + lane * (dim + 1), dim), logs[lane],
            dot(vs + row * value_dim, dos + lane * (value_dim + 1), value_dim), deltas[lane]);
        add_rows(dk_acc[r], pair.dscore, qs, dim + 1, dim);
        add_rows(dv_acc[r], pair.probability, dos, value_dim + 1, value_dim);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRowsPerWarp; ++r) {
    const int row = first + warp * kRowsPerWarp + r;
    if (row >= shape.keys) continue;
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
      const int col = lane + 32 * c;
      if (col < dim) dk.store<C>(unit.batch, unit.head, row, col, dk_acc[r][c]);
      if (col < value_dim) dv.store<C>(unit.batch, unit.head, row, col, dv_acc[r][c]);
    }
  }
}

}  // namespace

void attention_backward_cuda(const CudaCall& call) {
  if (is_mma_attention(call)) return attention_mma_backward_cuda(call);
  const AttentionShape shape = attention_shape(call, 7);
  const BackwardOperands operands{call.input(0), call.input(1), call.input(2),
                                  call.input(5), call.input(4), call.workspace.data()};
  visit_sizes(call, shape, [&]<typename C, int Columns>() {
    const int64_t queries = int64_t{shape.batch} * shape.heads * shape.queries;
    launch_for_each(call, queries,
                    RowDelta<C>{call.input(3), call.input(5), call.input(6),
                                reinterpret_cast<C*>(call.workspace.data()), shape.heads,
                                shape.queries, shape.value_dim});
    const int64_t both = shape.head_dim + shape.value_dim;
    const int64_t bytes = (kRows * both + kTile * (both + 4)) * static_cast<int64_t>(sizeof(C));
    launch(call, query_grad_kernel<C, Columns>,
           int64_t{shape.batch} * shape.heads * row_blocks(shape.queries), bytes, shape, operands,
           HeadMatrix(call.output(0)), fault_note(call));
    launch(call, key_grad_kernel<C, Columns>,
           int64_t{shape.batch} * shape.kv_heads * row_blocks(shape.keys), bytes, shape, operands,
           HeadMatrix(call.output(1)), HeadMatrix(call.output(2)), fault_note(call));
  });
}

}  // namespace brrr::kernels
