// One block of queries, backward. P comes back from the scores and their logsumexp:
//   P = exp(S - logsumexp),   dS = P * (dO V^T - delta) * f',   delta = sum(dO * O) - d logsumexp
//   dQ = dS K,   dK += dS^T Q,   dV += P^T dO       (Q scaled when packed, dQ when written)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/kernels/cpu/attention/attention_backward_tiles.cpp"
#include "hwy/foreach_target.h"
//
#include "brrr/kernels/cpu/attention/attention_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE::attention_tiles {

// What a block keeps in scratch.
template <typename T>
struct Parts {
  T *q, *q_packed, *dq, *dout, *dout_packed, *probability, *dscores, *slope;
  int64_t head_columns, value_columns;

  explicit Parts(const AttentionBackward<T>& call)
      : head_columns(padded<T>(call.head_dim)), value_columns(padded<T>(call.value_dim)) {
    T* next = call.scratch;
    const auto take = [&](int64_t columns) {
      T* const here = next;
      next += kWidth<T> * columns;
      return here;
    };
    q = take(head_columns);
    dq = take(head_columns);
    dout = take(value_columns);
    probability = take(kKeyTile);
    dscores = take(kKeyTile);
    slope = take(kKeyTile);
    q_packed = take(call.head_dim);
    dout_packed = take(call.value_dim);
  }
};

// Rows padded with zeros to whole vectors.
template <typename T>
void copy_rows(const T* x, int64_t stride, int64_t rows, int64_t columns, T scale, T* out) {
  const int64_t width = padded<T>(columns);
  for (int64_t i = 0; i < rows; ++i) {
    const T* HWY_RESTRICT from = x + i * stride;
    T* HWY_RESTRICT to = out + i * width;
    for (int64_t d = 0; d < columns; ++d) to[d] = scale * from[d];
    std::fill(to + columns, to + width, T(0));
  }
}

// Of each query: what is subtracted from scores and from dP. Queries that see nothing have a logsumexp
// of -inf; all their scores are hidden, and any finite number serves.
template <typename T>
struct RowTerms {
  alignas(64) T shift[kWidth<T>], delta[kWidth<T>];

  explicit RowTerms(const AttentionBackward<T>& call) {
    std::fill_n(shift, kWidth<T>, T(0));
    std::fill_n(delta, kWidth<T>, T(0));
    for (int64_t i = 0; i < call.count; ++i) {
      shift[i] = call.logsumexp[i] == kHidden<T> ? T(0) : call.logsumexp[i];
      delta[i] =
          dot(call.dout + i * call.dout_stride, call.out + i * call.out_stride, call.value_dim) -
          call.dlogsumexp[i];
    }
  }
};

// Scores become capped ones; the slope 1 - tanh^2 is kept beside them.
template <typename T>
void cap_with_slope(const KeyTile<T>& tile, const Strip& strip, double soft_cap, T* scores,
                    T* slopes) {
  const T limit = static_cast<T>(soft_cap), inverse = static_cast<T>(1 / soft_cap);
  for (int64_t k = strip.key; k < strip.key + strip.keys; ++k) {
    T* HWY_RESTRICT row = scores + tile.row(k);
    T* HWY_RESTRICT slope = slopes + tile.row(k);
    for (int64_t j = strip.first * kLanes<T>; j < strip.last * kLanes<T>; ++j) {
      const T t = math::tanh(row[j] * inverse);
      row[j] = limit * t;
      slope[j] = T(1) - t * t;
    }
  }
}

// Scores become P, and dP becomes dS.
template <typename T>
void differentiate(const KeyTile<T>& tile, const Strip& strip, const RowTerms<T>& terms, T* scores,
                   T* dscores) {
  constexpr T largest = sizeof(T) == 4 ? T(88.8) : T(709.8);  // beyond it exp is infinite
  for (int64_t k = strip.key; k < strip.key + strip.keys; ++k) {
    for (int64_t v = strip.first; v < strip.last; ++v) {
      T* HWY_RESTRICT p = scores + tile.row(k) + v * kLanes<T>;
      T* HWY_RESTRICT ds = dscores + tile.row(k) + v * kLanes<T>;
      const T* HWY_RESTRICT shift = terms.shift + v * kLanes<T>;
      const T* HWY_RESTRICT delta = terms.delta + v * kLanes<T>;
      for (int64_t j = 0; j < kLanes<T>; ++j) {
        p[j] = exp_flushed(math::at_most(p[j] - shift[j], largest));
        ds[j] = p[j] * (ds[j] - delta[j]);
      }
    }
  }
}

template <typename T>
void multiply_by_slope(const KeyTile<T>& tile, const Strip& strip, const T* slopes, T* dscores) {
  for (int64_t k = strip.key; k < strip.key + strip.keys; ++k) {
    const T* HWY_RESTRICT slope = slopes + tile.row(k);
    T* HWY_RESTRICT ds = dscores + tile.row(k);
    for (int64_t j = strip.first * kLanes<T>; j < strip.last * kLanes<T>; ++j) ds[j] *= slope[j];
  }
}

// Adds weights^T times the rows of the block to the rows of the keys of a strip, over the queries that
// see any of them.
template <typename T>
void add_to_keys(const AttentionBackward<T>& call, const KeyTile<T>& tile, const Strip& strip,
                 const T* weights, const T* rows, int64_t columns, T* sums, int64_t stride) {
  int64_t first = 0, behind = call.count;
  const VisibleKeys& visible = call.visible;
  if (visible.causal) {
    const int64_t position = call.first + visible.shift;  // of the block's first query
    first = std::max<int64_t>(0, strip.key - position);
    behind = std::min(behind, strip.key + strip.keys - 1 + visible.window - position);
  }
  if (first >= behind) return;
  multiply<T>({.rows = strip.keys,
               .vectors = columns / kLanes<T>,
               .depth = behind - first,
               .a = weights + tile.row(strip.key) + first,
               .a_row = kWidth<T>,
               .a_col = 1,
               .b = rows + first * columns,
               .b_row = columns,
               .c = sums + strip.key * stride,
               .c_row = stride,
               .add = true});
}

// Step by step over all strips: what one product reads again and again stays in the L1 cache.
template <typename T>
void differentiate_tile(const AttentionBackward<T>& call, const Lanes<T>& lanes,
                        const KeyTile<T>& tile, const RowTerms<T>& terms, const Parts<T>& parts) {
  for (const Strip& strip : tile) {
    multiply_strip(tile, strip, call.k, call.k_stride, call.head_dim, parts.q_packed,
                   parts.probability);
    if (call.soft_cap > 0)
      cap_with_slope(tile, strip, call.soft_cap, parts.probability, parts.slope);
    if (strip.edge) hide(call, lanes, tile, strip, parts.probability);
  }
  for (const Strip& strip : tile) {
    multiply_strip(tile, strip, call.v, call.v_stride, call.value_dim, parts.dout_packed,
                   parts.dscores);
    differentiate(tile, strip, terms, parts.probability, parts.dscores);
    if (call.soft_cap > 0) multiply_by_slope(tile, strip, parts.slope, parts.dscores);
  }
  for (const Strip& strip : tile) {
    add_to_keys(call, tile, strip, parts.probability, parts.dout, parts.value_columns, call.dv,
                call.dv_stride);
  }
  for (const Strip& strip : tile) {
    add_to_keys(call, tile, strip, parts.dscores, parts.q, parts.head_columns, call.dk,
                call.dk_stride);
  }
  add_to_queries(lanes, tile, parts.dscores, call.k, call.k_stride, parts.dq, parts.head_columns);
}

template <typename T>
void backward_block(const AttentionBackward<T>& call) {
  const Parts<T> parts(call);
  const T scale = static_cast<T>(call.scale);
  copy_rows(call.q, call.q_stride, call.count, call.head_dim, scale, parts.q);
  copy_rows(call.dout, call.dout_stride, call.count, call.value_dim, T(1), parts.dout);
  pack_transposed(parts.q, parts.head_columns, call.count, call.head_dim, T(1), parts.q_packed);
  pack_transposed(parts.dout, parts.value_columns, call.count, call.value_dim, T(1),
                  parts.dout_packed);
  std::fill_n(parts.dq, kWidth<T> * parts.head_columns, T(0));
  const Lanes<T> lanes(call);
  const RowTerms<T> terms(call);
  for (int64_t key = lanes.first_key(); key < lanes.last_key(); key += kKeyTile) {
    const KeyTile<T> tile(lanes, call.visible.documents, key,
                          std::min(key + kKeyTile, lanes.last_key()));
    if (tile.count > 0) differentiate_tile(call, lanes, tile, terms, parts);
  }
  for (int64_t i = 0; i < call.count; ++i) {
    const T* HWY_RESTRICT from = parts.dq + i * parts.head_columns;
    T* HWY_RESTRICT to = call.dq + i * call.dq_stride;
    for (int64_t d = 0; d < call.head_dim; ++d) to[d] = scale * from[d];
  }
}

}  // namespace brrr::kernels::HWY_NAMESPACE::attention_tiles

namespace brrr::kernels::HWY_NAMESPACE {

template <typename T>
AttentionKernel<AttentionBackward<T>> backward_kernel() {
  return {attention_tiles::kLanes<T>, attention_tiles::kWidth<T>,
          &attention_tiles::backward_block<T>};
}
AttentionKernel<AttentionBackward<float>> backward_f32() { return backward_kernel<float>(); }
AttentionKernel<AttentionBackward<double>> backward_f64() { return backward_kernel<double>(); }

}  // namespace brrr::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr::kernels {
HWY_EXPORT(backward_f32);
HWY_EXPORT(backward_f64);
AttentionKernel<AttentionBackward<float>> attention_backward_f32() {
  return HWY_DYNAMIC_DISPATCH(backward_f32)();
}
AttentionKernel<AttentionBackward<double>> attention_backward_f64() {
  return HWY_DYNAMIC_DISPATCH(backward_f64)();
}
}  // namespace brrr::kernels
#endif
