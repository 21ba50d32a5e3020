// The inner loops of attention for the CPU that this runs on: one block of queries of one head against
// all keys that it sees, key tile by key tile, so that no more than a tile of scores exists.
//
// Scores are held transposed, S^T [keys, queries], with queries along the lanes of a vector:
//   S^T = K Q^T       K is read where it lies, one broadcast an element; Q^T is packed once a block
//   softmax           maxima and sums run down the keys: vertical, no shuffles
//   O  += P V         P^T is read by broadcasts, rows of V are vectors
// Every product has the form C[i, :] += A[i, k] B[k, :] with A broadcast from any strides and rows of B
// contiguous. The order of additions depends on shapes and visibility only.
#pragma once

#include <cstdint>

#include "brrr/kernels/calls/attention_rule.h"

namespace brrr::kernels {

inline constexpr int64_t kKeyTile = 64;  // its scores for a block of queries stay in the L1 cache

// Rows of k and v are padded: they may be read up to a whole number of vectors and hold zeros there.
template <typename T>
struct AttentionBlock {
  int64_t first, count;  // queries of the block
  VisibleKeys visible;
  double scale, soft_cap;
  int64_t head_dim, value_dim;
  const T *q, *k, *v;  // q: first row of the block; k, v: row 0, padded
  int64_t q_stride, k_stride, v_stride;
  T* scratch;
};

template <typename T>
struct AttentionForward : AttentionBlock<T> {
  T* out;  // [count, value_dim]
  int64_t out_stride;
  T* logsumexp;  // [count]
};

template <typename T>
struct AttentionBackward : AttentionBlock<T> {
  const T *out, *dout;  // first rows of the block
  int64_t out_stride, dout_stride;
  const T *logsumexp, *dlogsumexp;
  T* dq;
  int64_t dq_stride;
  T *dk, *dv;  // [keys, padded size]: what this block gives is added
  int64_t dk_stride, dv_stride;
};

// A block on this CPU. Rows are padded to multiples of `lanes`, a block has at most `width` queries.
template <typename Call>
struct AttentionKernel {
  int64_t lanes, width;
  void (*run)(const Call& call);
  int64_t padded(int64_t size) const { return (size + lanes - 1) / lanes * lanes; }
};

AttentionKernel<AttentionForward<float>> attention_forward_f32();
AttentionKernel<AttentionForward<double>> attention_forward_f64();
AttentionKernel<AttentionBackward<float>> attention_backward_f32();
AttentionKernel<AttentionBackward<double>> attention_backward_f64();

// Scratch of one block in elements: Q^T, a tile of scores, and O.
template <typename T>
int64_t scratch_elements(const AttentionKernel<AttentionForward<T>>& kernel, int64_t head_dim,
                         int64_t value_dim) {
  return kernel.width * (head_dim + kKeyTile + kernel.padded(value_dim));
}
// Q, Q^T, dQ, dO, dO^T, and tiles of P, dS and the slope of the soft cap.
template <typename T>
int64_t scratch_elements(const AttentionKernel<AttentionBackward<T>>& kernel, int64_t head_dim,
                         int64_t value_dim) {
  return kernel.width * (head_dim + 2 * kernel.padded(head_dim) + value_dim +
                         kernel.padded(value_dim) + 3 * kKeyTile);
}

}  // namespace brrr::kernels
