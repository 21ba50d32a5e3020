#include <cuda_runtime.h>

#include <algorithm>

#include "brrr/device/cuda/slices.h"

namespace brrr::cuda {
namespace {

constexpr int kThreads = 256;

template <typename Word>
__global__ void take_kernel(Slice slice, const int64_t* counter) {
  const Word* const from = reinterpret_cast<const Word*>(slice.from + *counter * slice.bytes);
  Word* const to = reinterpret_cast<Word*>(slice.to);
  const int64_t words = slice.bytes / static_cast<int64_t>(sizeof(Word));
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < words;
       i += int64_t{gridDim.x} * kThreads)
    to[i] = from[i];
}

__global__ void advance_kernel(int64_t* counter) { ++*counter; }

template <typename Word>
void take(const Slice& slice, const int64_t* counter, Stream stream) {
  constexpr int64_t kMostBlocks = 1024;
  const int64_t words = slice.bytes / static_cast<int64_t>(sizeof(Word));
  const int64_t blocks = std::clamp<int64_t>((words + kThreads - 1) / kThreads, 1, kMostBlocks);
  take_kernel<Word><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(slice, counter);
  check_launch("slices of a loop");
}

}  // namespace

void take_slices(std::span<const Slice> slices, const int64_t* counter, Stream stream) {
  for (const Slice& slice : slices) {
    const uintptr_t shared = reinterpret_cast<uintptr_t>(slice.from) |
                             reinterpret_cast<uintptr_t>(slice.to) |
                             static_cast<uintptr_t>(slice.bytes);
    shared % sizeof(uint4) == 0      ? take<uint4>(slice, counter, stream)
    : shared % sizeof(uint32_t) == 0 ? take<uint32_t>(slice, counter, stream)
                                     : take<uint8_t>(slice, counter, stream);
  }
}

void advance(int64_t* counter, Stream stream) {
  advance_kernel<<<1, 1, 0, stream>>>(counter);
  check_launch("the counter of a loop");
}

}  // namespace brrr::cuda
