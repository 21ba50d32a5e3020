// The name of random numbers, as kernels take it.
#pragma once

#include <cstdint>

namespace brrr {

// Which random numbers: two draws with different keys have nothing in common.
struct RandomKey {
  uint64_t seed = 0;
  uint32_t stream = 0;  // stream_id("dropout")
  uint32_t draw = 0;    // how many tensors this stream made before
  bool operator==(const RandomKey&) const = default;
};

}  // namespace brrr
