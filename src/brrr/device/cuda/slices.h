// What an iteration of a loop on the device reads of operands that are dealt out among the iterations: found by a counter
// in device memory, so that a captured iteration needs nothing from the host.
#pragma once

#include <cstdint>
#include <span>

#include "brrr/device/cuda/runtime.h"

namespace brrr::cuda {

struct Slice {
  const std::byte* from;  // the first one
  std::byte* to;
  int64_t bytes;  // of one; they follow each other
};

// Enqueued: slice number *counter of each, then the counter goes on. All iterations use one stream.
void take_slices(std::span<const Slice> slices, const int64_t* counter, Stream stream);
void advance(int64_t* counter, Stream stream);

}  // namespace brrr::cuda
