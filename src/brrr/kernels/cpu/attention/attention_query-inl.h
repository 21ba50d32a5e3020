// Attention of single queries, as a decoder asks for it: bound by reading k and v. Queries along the
// lanes would leave fifteen of sixteen empty, so here the keys lie along the lanes for the softmax, and the
// head for both products. Included once for every CPU target.
#if defined(BRRR_OPS_ATTENTION_QUERY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRRR_OPS_ATTENTION_QUERY_INL_H_
#undef BRRR_OPS_ATTENTION_QUERY_INL_H_
#else
#define BRRR_OPS_ATTENTION_QUERY_INL_H_
#endif

#include "brrr/kernels/cpu/attention/attention_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE::attention_tiles {

// scores[i] = scale q . k[i], four keys at a time: their sums do not wait for each other.
template <typename T>
void score_keys(const T* q, const T* k, int64_t k_stride, int64_t keys, int64_t head_dim, T scale,
                T* scores) {
  constexpr int kKeys = 4;
  const Tag<T> d;
  int64_t key = 0;
  for (; key + kKeys <= keys; key += kKeys) {
    hn::Vec<Tag<T>> sums[kKeys];
    for (auto& sum : sums) sum = hn::Zero(d);
    const T* const rows = k + key * k_stride;
    int64_t i = 0;
    for (; i + kLanes<T> <= head_dim; i += kLanes<T>) {
      const auto factor = hn::LoadU(d, q + i);
#pragma GCC unroll 4
      for (int row = 0; row < kKeys; ++row)
        sums[row] = hn::MulAdd(factor, hn::LoadU(d, rows + row * k_stride + i), sums[row]);
    }
#pragma GCC unroll 4
    for (int row = 0; row < kKeys; ++row) {
      T total = hn::GetLane(hn::SumOfLanes(d, sums[row]));
      for (int64_t rest = i; rest < head_dim; ++rest)
        total += q[rest] * rows[row * k_stride + rest];
      scores[key + row] = scale * total;
    }
  }
  for (; key < keys; ++key) scores[key] = scale * dot(q, k + key * k_stride, head_dim);
}

// sums += weights^T v: up to kHeld vectors of the row stay in registers, two keys in flight.
template <typename T>
void add_values(const T* weights, const T* v, int64_t v_stride, int64_t keys, int64_t columns,
                T* sums) {
  constexpr int kHeld = 4;
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  for (int64_t first = 0; first < columns; first += kHeld * kLanes<T>) {
    const int held = static_cast<int>(std::min<int64_t>(kHeld, (columns - first) / kLanes<T>));
    V even[kHeld], odd[kHeld];
    for (int i = 0; i < kHeld; ++i) {
      even[i] = i < held ? hn::LoadU(d, sums + first + i * kLanes<T>) : hn::Zero(d);
      odd[i] = hn::Zero(d);
    }
    const auto add = [&](int64_t key, V* into) {
      const V weight = hn::Set(d, weights[key]);
      const T* const row = v + key * v_stride + first;
      if (held == kHeld) {
#pragma GCC unroll 4
        for (int i = 0; i < kHeld; ++i)
          into[i] = hn::MulAdd(weight, hn::LoadU(d, row + i * kLanes<T>), into[i]);
      } else {
        for (int i = 0; i < held; ++i)
          into[i] = hn::MulAdd(weight, hn::LoadU(d, row + i * kLanes<T>), into[i]);
      }
    };
    int64_t key = 0;
    for (; key + 2 <= keys; key += 2) {
      add(key, even);
      add(key + 1, odd);
    }
    if (key < keys) add(key, even);
    for (int i = 0; i < held; ++i)
      hn::StoreU(hn::Add(even[i], odd[i]), d, sums + first + i * kLanes<T>);
  }
}

// A tile of scores becomes weights exp(s - m); l and the sums follow a larger m.
template <typename T>
void weigh_keys(T* scores, int64_t keys, T& m, T& l, T* sums, int64_t columns) {
  const Tag<T> d;
  const int64_t whole = padded<T>(keys);
  std::fill_n(scores + keys, whole - keys, kHidden<T>);
  auto top = hn::Set(d, m);
  for (int64_t i = 0; i < whole; i += kLanes<T>) top = hn::Max(top, hn::LoadU(d, scores + i));
  const T largest = hn::GetLane(hn::MaxOfLanes(d, top));
  const T shift = largest == kHidden<T> ? T(0) : largest;
  if (const T factor = exp_flushed(m - shift); factor != T(1)) {
    l *= factor;
    for (int64_t i = 0; i < columns; ++i) sums[i] *= factor;
  }
  m = largest;
  T* HWY_RESTRICT all = scores;
  alignas(64) T lanes[kLanes<T>] = {};
  for (int64_t i = 0; i < whole; i += kLanes<T>) {
    for (int64_t j = 0; j < kLanes<T>; ++j) {
      all[i + j] = exp_flushed(all[i + j] - shift);
      lanes[j] += all[i + j];
    }
  }
  l += hn::GetLane(hn::SumOfLanes(d, hn::Load(d, lanes)));
}

template <typename T>
void attend_one(const AttentionForward<T>& call, int64_t query) {
  const int64_t columns = padded<T>(call.value_dim), position = call.first + query;
  const int64_t begin = call.visible.begin(position), end = call.visible.end(position);
  T *const scores = call.scratch, *const sums = scores + kKeyTile;
  const int64_t* const documents = call.visible.documents;
  std::fill_n(sums, columns, T(0));
  T m = kHidden<T>, l = 0;
  for (int64_t key = begin; key < end; key += kKeyTile) {
    const int64_t keys = std::min(kKeyTile, end - key);
    score_keys(call.q + query * call.q_stride, call.k + key * call.k_stride, call.k_stride, keys,
               call.head_dim, static_cast<T>(call.scale), scores);
    if (call.soft_cap > 0) {
      const T limit = static_cast<T>(call.soft_cap), inverse = static_cast<T>(1 / call.soft_cap);
      for (int64_t i = 0; i < keys; ++i) scores[i] = limit * math::tanh(scores[i] * inverse);
    }
    if (documents) {
      for (int64_t i = 0; i < keys; ++i)
        scores[i] = documents[key + i] == documents[position] ? scores[i] : kHidden<T>;
    }
    weigh_keys(scores, keys, m, l, sums, columns);
    add_values(scores, call.v + key * call.v_stride, call.v_stride, keys, columns, sums);
  }
  const T inverse = l == T(0) ? T(0) : T(1) / l;
  T* const out = call.out + query * call.out_stride;
  for (int64_t i = 0; i < call.value_dim; ++i) out[i] = sums[i] * inverse;
  call.logsumexp[query] = m + math::log(l);  // -inf where nothing was seen
}

}  // namespace brrr::kernels::HWY_NAMESPACE::attention_tiles
HWY_AFTER_NAMESPACE();

#endif
