// Which keys a query sees, on the device: VisibleKeys of attention_rule.h for one batch.
#pragma once

#include "brrr/kernels/cuda/attention/attention_cuda.h"
#include "brrr/kernels/cuda/device/elements.cuh"

namespace brrr::kernels {

struct DeviceVisible {
  int length;  // valid keys
  int shift;   // query i stands at position i + shift
  int window;
  bool causal;
  const int64_t* documents;
  int64_t document_stride;

  __device__ DeviceVisible(const AttentionShape& shape, int batch, const cuda::FaultNote& note)
      : DeviceVisible(shape, batch, length_of(shape, batch, note)) {}
  __device__ DeviceVisible(const AttentionShape& shape, int batch, int known_length)
      : length(known_length),
        shift(known_length - shape.queries),
        window(shape.window),
        causal(shape.causal),
        documents(shape.documents ? shape.documents + batch * shape.document_batch_stride
                                  : nullptr),
        document_stride(shape.document_stride) {}

  static __device__ int length_of(const AttentionShape& shape, int batch,
                                  const cuda::FaultNote& note) {
    if (!shape.lengths) return shape.keys;
    const int64_t given = shape.lengths[batch * shape.length_stride];
    return note.accepts(given, int64_t{shape.keys} + 1) ? static_cast<int>(given) : 0;
  }

  __device__ int clamped(int key) const { return max(0, min(key, length)); }
  __device__ int begin(int query) const { return causal ? clamped(query + shift - window + 1) : 0; }
  __device__ int end(int query) const { return causal ? clamped(query + shift + 1) : length; }
  // Queries [first_query(j), end_query(j)) may see key j, as far as positions tell.
  __device__ int first_query(int key) const { return causal ? max(0, key - shift) : 0; }
  __device__ int end_query(int key, int queries) const {
    return causal ? max(0, min(queries, key - shift + window)) : queries;
  }
  __device__ bool sees(int query, int key) const {
    const int distance = query + shift - key;
    if (key >= length || (causal && (distance < 0 || distance >= window))) return false;
    return !documents || documents[query * document_stride] == documents[key * document_stride];
  }
};

}  // namespace brrr::kernels
