// One block of queries, forward: a softmax that is corrected as larger scores come along.
//   m = max so far,  l = sum of exp(s - m),  O = sum of exp(s - m) v;  a new m scales l and O by
//   exp(old m - new m).  In the end out = O / l and logsumexp = m + log(l).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/kernels/cpu/attention/attention_forward_tiles.cpp"
#include "hwy/foreach_target.h"
//
#include "brrr/kernels/cpu/attention/attention_query-inl.h"
#include "brrr/kernels/cpu/attention/attention_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE::attention_tiles {

template <typename T>
struct Softmax {
  alignas(64) T m[kWidth<T>], l[kWidth<T>], shift[kWidth<T>], factor[kWidth<T>];
};

template <typename T>
void start(Softmax<T>& state) {
  std::fill_n(state.m, kWidth<T>, kHidden<T>);
  std::fill_n(state.l, kWidth<T>, T(0));
}

// The maxima with this tile, and the factor for what was summed before. Queries that have seen nothing
// yet are shifted by 0: exp(-inf - 0) = 0.
template <typename T>
void raise_maxima(const KeyTile<T>& tile, const T* scores, Softmax<T>& state) {
  const Tag<T> d;
  alignas(64) T largest[kWidth<T>];
  std::copy_n(state.m, kWidth<T>, largest);
  for (const Strip& strip : tile) {
    for (int64_t j = strip.first * kLanes<T>; j < strip.last * kLanes<T>; j += kLanes<T>) {
      auto top = hn::Load(d, largest + j);
      for (int64_t k = 0; k < strip.keys; ++k)
        top = hn::Max(top, hn::LoadU(d, scores + tile.row(strip.key + k) + j));
      hn::Store(top, d, largest + j);
    }
  }
  for (int64_t j = 0; j < kWidth<T>; ++j) {
    state.shift[j] = largest[j] == kHidden<T> ? T(0) : largest[j];
    state.factor[j] = exp_flushed(state.m[j] - state.shift[j]);
    state.l[j] *= state.factor[j];
    state.m[j] = largest[j];
  }
}

template <typename T>
void exponentiate(const KeyTile<T>& tile, T* scores, Softmax<T>& state) {
  for (const Strip& strip : tile) {
    for (int64_t k = strip.key; k < strip.key + strip.keys; ++k) {
      for (int64_t v = strip.first; v < strip.last; ++v) {
        T* HWY_RESTRICT row = scores + tile.row(k) + v * kLanes<T>;
        const T* HWY_RESTRICT shift = state.shift + v * kLanes<T>;
        T* HWY_RESTRICT l = state.l + v * kLanes<T>;
        for (int64_t j = 0; j < kLanes<T>; ++j) {
          row[j] = exp_flushed(row[j] - shift[j]);
          l[j] += row[j];
        }
      }
    }
  }
}

template <typename T>
void cap(const KeyTile<T>& tile, const Strip& strip, double soft_cap, T* scores) {
  const T limit = static_cast<T>(soft_cap), inverse = static_cast<T>(1 / soft_cap);
  for (int64_t k = strip.key; k < strip.key + strip.keys; ++k) {
    T* HWY_RESTRICT row = scores + tile.row(k);
    for (int64_t j = strip.first * kLanes<T>; j < strip.last * kLanes<T>; ++j)
      row[j] = limit * math::tanh(row[j] * inverse);
  }
}

template <typename T>
void rescale(const Lanes<T>& lanes, const T* factor, T* sums, int64_t columns) {
  const Tag<T> d;
  for (int64_t i = 0; i < lanes.count; ++i) {
    if (factor[i] == T(1)) continue;  // most rows of long sequences: the largest score comes early
    const auto by = hn::Set(d, factor[i]);
    for (T *at = sums + i * columns, *end = at + columns; at < end; at += kLanes<T>)
      hn::StoreU(hn::Mul(by, hn::LoadU(d, at)), d, at);
  }
}

template <typename T>
void write_block(const AttentionForward<T>& call, const Softmax<T>& state, const T* sums) {
  const int64_t columns = padded<T>(call.value_dim);
  alignas(64) T inverse[kWidth<T>], total[kWidth<T>];
  for (int64_t j = 0; j < kWidth<T>; ++j) {
    inverse[j] = state.l[j] == T(0) ? T(0) : T(1) / state.l[j];
    total[j] = state.m[j] + math::log(state.l[j]);  // -inf where nothing was seen
  }
  std::copy_n(total, call.count, call.logsumexp);
  for (int64_t i = 0; i < call.count; ++i) {
    const T* HWY_RESTRICT row = sums + i * columns;
    T* HWY_RESTRICT out = call.out + i * call.out_stride;
    const T by = inverse[i];
    for (int64_t d = 0; d < call.value_dim; ++d) out[d] = row[d] * by;
  }
}

constexpr int64_t kFewQueries = 2;  // that are faster one by one

template <typename T>
void forward_block(const AttentionForward<T>& call) {
  if (call.count <= kFewQueries) {
    for (int64_t i = 0; i < call.count; ++i) attend_one(call, i);
    return;
  }
  T* const packed = call.scratch;
  T* const scores = packed + kWidth<T> * call.head_dim;
  T* const sums = scores + kWidth<T> * kKeyTile;
  const int64_t columns = padded<T>(call.value_dim);
  const Lanes<T> lanes(call);
  Softmax<T> state;
  start(state);
  pack_transposed(call.q, call.q_stride, call.count, call.head_dim, static_cast<T>(call.scale),
                  packed);
  std::fill_n(sums, kWidth<T> * columns, T(0));
  for (int64_t key = lanes.first_key(); key < lanes.last_key(); key += kKeyTile) {
    const KeyTile<T> tile(lanes, call.visible.documents, key,
                          std::min(key + kKeyTile, lanes.last_key()));
    if (tile.count == 0) continue;
    for (const Strip& strip : tile) {
      multiply_strip(tile, strip, call.k, call.k_stride, call.head_dim, packed, scores);
      if (call.soft_cap > 0) cap(tile, strip, call.soft_cap, scores);
      if (strip.edge) hide(call, lanes, tile, strip, scores);
    }
    raise_maxima(tile, scores, state);
    exponentiate(tile, scores, state);
    if (key > lanes.first_key()) rescale(lanes, state.factor, sums, columns);
    add_to_queries(lanes, tile, scores, call.v, call.v_stride, sums, columns);
  }
  write_block(call, state, sums);
}

}  // namespace brrr::kernels::HWY_NAMESPACE::attention_tiles

namespace brrr::kernels::HWY_NAMESPACE {

template <typename T>
AttentionKernel<AttentionForward<T>> forward_kernel() {
  return {attention_tiles::kLanes<T>, attention_tiles::kWidth<T>,
          &attention_tiles::forward_block<T>};
}
AttentionKernel<AttentionForward<float>> forward_f32() { return forward_kernel<float>(); }
AttentionKernel<AttentionForward<double>> forward_f64() { return forward_kernel<double>(); }

}  // namespace brrr::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr::kernels {
HWY_EXPORT(forward_f32);
HWY_EXPORT(forward_f64);
AttentionKernel<AttentionForward<float>> attention_forward_f32() {
  return HWY_DYNAMIC_DISPATCH(forward_f32)();
}
AttentionKernel<AttentionForward<double>> attention_forward_f64() {
  return HWY_DYNAMIC_DISPATCH(forward_f64)();
}
}  // namespace brrr::kernels
#endif
