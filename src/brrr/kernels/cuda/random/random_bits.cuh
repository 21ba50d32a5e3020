// The random bits of an element, as on the cpu: element i of any random tensor has half of block i / 2.
#pragma once

#include "brrr/base/philox.h"
#include "brrr/kernels/cuda/device/elements.cuh"

namespace brrr::kernels {

// A key where the GPU has it; every thread reads its three words, which the caches keep.
struct DeviceKey {
  const int64_t* words;
  int64_t stride;

  explicit DeviceKey(const Operand& operand)
      : words(Elements(operand).as<const int64_t>()), stride(operand.layout->strides[0]) {}

  struct Pair {
    uint64_t first, second;
  };
  // The bits of elements 2 block and 2 block + 1.
  __device__ Pair pair(int64_t block) const {
    const PhiloxCounter counter =
        philox_counter(static_cast<uint64_t>(block), static_cast<uint32_t>(words[stride]),
                       static_cast<uint32_t>(words[2 * stride]));
    const PhiloxBlock bits = philox4x32(counter, philox_key(static_cast<uint64_t>(words[0])));
    return {static_cast<uint64_t>(bits.v[0]) << 32 | bits.v[1],
            static_cast<uint64_t>(bits.v[2]) << 32 | bits.v[3]};
  }
};

}  // namespace brrr::kernels
