// Attention forward in plain arithmetic, and what kernels are told about a call.
#include "brrr/kernels/cuda/attention/attention_plain.cuh"

namespace brrr::kernels {
namespace {

using namespace plain_attention;

template <typename C, int Columns>
__global__ void __launch_bounds__(kWarps * 32)
    forward_kernel(AttentionShape shape, HeadMatrix q, HeadMatrix k, HeadMatrix v, HeadMatrix out,
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
        out.store<C>(unit.batch, unit.head, row, col, total[r] == 0 ? C(0) : acc[r][c] / total[r]);
    }
  }
}

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
           HeadMatrix(call.input(1)), HeadMatrix(call.input(2)), HeadMatrix(call.output(0)),
           Elements(call.output(1)), fault_note(call));
  });
}

}  // namespace brrr::kernels
