// Pairs of keys and places by CUB's radix sort, which is stable and takes no atomics on floats.
#pragma once

#include <cub/device/device_radix_sort.cuh>

#include "brrr/device/cuda/check.h"
#include "brrr/kernels/cuda/device/elements.cuh"
#include "brrr/kernels/cuda/index/sort_memory.h"

namespace brrr::kernels {

// Keys and places, twice each: a pass reads one pair of buffers and writes the other.
template <typename Key>
struct SortBuffers {
  Key *keys, *sorted_keys;
  uint32_t *places, *sorted_places;

  static int64_t bytes(int64_t count) { return sort_buffer_bytes(count, sizeof(Key)); }
  SortBuffers(std::byte* memory, int64_t count) {
    const int64_t key_bytes = whole_lines(count * static_cast<int64_t>(sizeof(Key)));
    keys = reinterpret_cast<Key*>(memory);
    sorted_keys = reinterpret_cast<Key*>(memory + key_bytes);
    places = reinterpret_cast<uint32_t*>(memory + 2 * key_bytes);
    sorted_places = reinterpret_cast<uint32_t*>(memory + 2 * key_bytes + whole_lines(count * 4));
  }
};

inline int bits_below(int64_t size) {
  int bits = 1;
  while (bits < 63 && (int64_t{1} << bits) < size) ++bits;
  return bits;
}

template <typename Key>
void sort_pairs(const CudaCall& call, std::byte* scratch, int64_t scratch_bytes,
                const SortBuffers<Key>& buffers, int64_t count, int bits) {
  auto bytes = static_cast<size_t>(scratch_bytes);
  cuda::require(cub::DeviceRadixSort::SortPairs(scratch, bytes, buffers.keys, buffers.sorted_keys,
                                                buffers.places, buffers.sorted_places, count, 0,
                                                bits, call.stream),
                "cub::DeviceRadixSort of ", count, " pairs for ", call.op.name);
}

inline void require_countable(const CudaCall& call, int64_t count) {
  check(count < INT32_MAX, call.op.name, ": ", count,
        " elements are too many to sort on a GPU; use fewer than 2^31");
}

}  // namespace brrr::kernels
