// Attention for every dtype, head size and rule, in plain arithmetic. A block has 16 queries (or keys), 4 a
// warp; tiles of 32 keys (queries) come through shared memory. For scores a lane has one of the 32; for sums
// of rows it has every 32nd column.
#include <limits>

#include "brrr/ops/attention_cuda.h"
#include "brrr/ops/attention_visible.cuh"

namespace brrr {
namespace {

constexpr int kWarps = 4, kRowsPerWarp = 4, kRows = kWarps * kRowsPerWarp, kTile = 32;
constexpr int kMaxHead = 256;
constexpr unsigned kAllLanes = 0xffffffffu;

struct HeadMatrix {
  Elements data;
  HeadStrides strides;

  HeadMatrix(const Operand& x) : data(x), strides{} {  // NOLINT: an operand as a kernel sees it
    const Strides& s = x.layout->strides;
    strides = {s[0], s[1], s[2], x.layout->rank() == 4 ? s[3] : 0};
  }
  template <typename C>
  __device__ C at(int batch, int head, int row, int col) const {
    return data.load<C>(batch * strides.batch + head * strides.head + row * strides.row +
                        col * strides.col);
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

// ---- Forward.

template <typename C, int Columns>
__global__ void __launch_bounds__(kWarps * 32)
    forward_kernel(AttentionShape shape, HeadMatrix q, HeadMatrix k, HeadMatrix v, Elements out,
                   Elements logsumexp, cuda::FaultNote note) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int dim = shape.head_dim, value_dim = shape.value_dim;
  C* const qs = reinterpret_cast<C*>(memory);
  C* const ks = qs + kRows * dim;
  C* const vs = ks + kTile * (dim + 1);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Unit unit((shape.queries + kRows - 1) / kRows, shape.heads);
  const int first = unit.block * kRows, last = min(shape.queries, first + kRows) - 1;
  const int kv_head = unit.head / (shape.heads / shape.kv_heads);
  const DeviceVisible visible(shape, unit.batch, note);
  load_rows(qs, dim, q, unit.batch, unit.head, first, kRows, shape.queries, dim);

  const C hidden = -std::numeric_limits<C>::infinity();
  C largest[kRowsPerWarp], total[kRowsPerWarp], acc[kRowsPerWarp][Columns];
#pragma unroll
  for (int r = 0; r < kRowsPerWarp; ++r) {
    largest[r] = hidden;
    total[r] = 0;
#pragma unroll
    for (int c = 0; c < Columns; ++c) acc[r][c] = 0;
  }
  const int end = visible.end(last);
  for (int tile = visible.begin(first) / kTile * kTile; tile < end; tile += kTile) {
    __syncthreads();
    load_rows(ks, dim + 1, k, unit.batch, kv_head, tile, kTile, shape.keys, dim);
    load_rows(vs, value_dim, v, unit.batch, kv_head, tile, kTile, shape.keys, value_dim);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kRowsPerWarp; ++r) {
      const int row = warp * kRowsPerWarp + r;
      const bool seen = first + row < shape.queries && visible.sees(first + row, tile + lane);
      const C score =
          seen ? score_of(shape, dot(qs + row * dim, ks + lane * (dim + 1), dim)).value : hidden;
      const C next = max(largest[r], warp_max(score));
      if (next == hidden) continue;  // the same for all lanes
      const C kept = largest[r] == hidden ? C(0) : exp(largest[r] - next);
      const C weight = score == hidden ? C(0) : exp(score - next);
      largest[r] = next;
      total[r] = total[r] * kept + warp_sum(weight);
#pragma unroll
      for (int c = 0; c < Columns; ++c) acc[r][c] *= kept;
      add_rows(acc[r], weight, vs, value_dim, value_dim);
    }
  }
#pragma unroll
  for (int r = 0; r < kRowsPerWarp; ++r) {
    const int row = first + warp * kRowsPerWarp + r;
    if (row >= shape.queries) continue;
    const int64_t flat =
        (static_cast<int64_t>(unit.batch) * shape.heads + unit.head) * shape.queries + row;
    if (lane == 0) logsumexp.store<C>(flat, total[r] == 0 ? hidden : largest[r] + log(total[r]));
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
      const int col = lane + 32 * c;
      if (col < value_dim)
        out.store<C>(flat * value_dim + col, total[r] == 0 ? C(0) : acc[r][c] / total[r]);
    }
  }
}

// ---- Backward. delta = sum(dO * O) - d logsumexp of a query; then
//   dS = P (dO V^T - delta) f' scale,   dQ = dS K,   dK = dS^T Q,   dV = P^T dO

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
    query_grad_kernel(AttentionShape shape, BackwardOperands x, Elements dq, cuda::FaultNote note) {
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
      if (col < dim) dq.store<C>((flat_first + row) * dim + col, acc[r][c]);
    }
  }
}

// A block has 16 keys of one kv head and walks the queries of all heads that share it, in order.
template <typename C, int Columns>
__global__ void __launch_bounds__(kWarps * 32)
    key_grad_kernel(AttentionShape shape, BackwardOperands x, Elements dk, Elements dv,
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
    const int64_t flat =
        (static_cast<int64_t>(unit.batch) * shape.kv_heads + unit.head) * shape.keys + row;
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
      const int col = lane + 32 * c;
      if (col < dim) dk.store<C>(flat * dim + col, dk_acc[r][c]);
      if (col < value_dim) dv.store<C>(flat * value_dim + col, dv_acc[r][c]);
    }
  }
}

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

int64_t row_blocks(int rows) { return (rows + kRows - 1) / kRows; }

}  // namespace

AttentionShape attention_shape(const CudaCall& call, int extra) {
  const AttentionSizes sizes =
      attention_sizes(call.input(0).shape(), call.input(1).shape(), call.input(2).shape());
  const AttentionRule rule = attention_rule(call.attrs);
  const int64_t any_distance = sizes.keys + sizes.queries;
  check(any_distance < INT32_MAX / 2, call.op.name, ": ", sizes.keys, " keys and ", sizes.queries,
        " queries are too many for a GPU; use less than 2^30");
  AttentionShape shape{.batch = static_cast<int>(sizes.batch),
                       .heads = static_cast<int>(sizes.heads),
                       .kv_heads = static_cast<int>(sizes.kv_heads),
                       .queries = static_cast<int>(sizes.queries),
                       .keys = static_cast<int>(sizes.keys),
                       .head_dim = static_cast<int>(sizes.head_dim),
                       .value_dim = static_cast<int>(sizes.value_dim),
                       .causal = rule.causal,
                       .window = static_cast<int>(
                           rule.window > 0 ? std::min(rule.window, any_distance) : any_distance),
                       .scale = static_cast<float>(rule.scale),
                       .soft_cap = static_cast<float>(rule.soft_cap),
                       .wide_scale = rule.scale,
                       .wide_soft_cap = rule.soft_cap,
                       .lengths = nullptr,
                       .length_stride = 0,
                       .documents = nullptr,
                       .document_batch_stride = 0,
                       .document_stride = 0};
  if (!rule.documents && !rule.lengths) return shape;
  const Operand& data = call.input(extra);
  const auto* values = reinterpret_cast<const int64_t*>(data.base) + data.layout->offset;
  if (rule.lengths) {
    shape.lengths = values;
    shape.length_stride = data.layout->strides[0];
  } else {
    shape.documents = values;
    shape.document_batch_stride = data.layout->strides[0];
    shape.document_stride = data.layout->strides[1];
  }
  return shape;
}

void attention_cuda(const CudaCall& call) {
  if (call.output(1).count() == 0) return;
  if (is_mma_attention(call)) return attention_mma_cuda(call);
  const AttentionShape shape = attention_shape(call, 3);
  visit_sizes(call, shape, [&]<typename C, int Columns>() {
    const int64_t elements =
        kRows * shape.head_dim + kTile * (shape.head_dim + 1 + shape.value_dim);
    launch(call, forward_kernel<C, Columns>,
           int64_t{shape.batch} * shape.heads * row_blocks(shape.queries),
           elements * static_cast<int64_t>(sizeof(C)), shape, HeadMatrix(call.input(0)),
           HeadMatrix(call.input(1)), HeadMatrix(call.input(2)), Elements(call.output(0)),
           Elements(call.output(1)), fault_note(call));
  });
}

int64_t attention_backward_cuda_workspace(const CudaCall& call) {
  return call.input(4).count() * 8;  // delta, in f64 at most
}

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
           Elements(call.output(0)), fault_note(call));
    launch(call, key_grad_kernel<C, Columns>,
           int64_t{shape.batch} * shape.kv_heads * row_blocks(shape.keys), bytes, shape, operands,
           Elements(call.output(1)), Elements(call.output(2)), fault_note(call));
  });
}

}  // namespace brrr
