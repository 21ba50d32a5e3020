// Long rows in shared memory, so that they are read once: a thread copies chunks, waits for its own copies, and reads no
// others. As soon as it is done with one, that of the block's next row can be on its way to the place.
#pragma once

#include "brrr/kernels/cuda/device/mma.cuh"
#include "brrr/kernels/cuda/rows/softmax_rows.cuh"

namespace brrr::kernels {

// How much of a row a block may keep in shared memory: all of a block's, but for what teams and the driver take.
inline int64_t most_staged_bytes() {
  return cuda::device_facts(cuda::current_device()).shared_bytes_per_block - 1024;
}
template <typename Kernel>
void allow_shared_bytes(Kernel* kernel, size_t bytes, const char* what) {
  cuda::require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(bytes)),
                "shared memory of ", what, ", ", bytes, " B");
}

// The copies of a row to shared memory in four groups, so that its first tiles are summed while others are under way:
// three of a tile each, and one of all behind them. A thread waits for its own copies, and reads no others.
struct CopyGroups {
  static constexpr int kAlone = 3;
  static __device__ void close_tile(int tile) {
    if (tile < kAlone) mma::finish_copies();
  }
  static __device__ void close_row(int tiles) {  // also those that have no tile
    for (int group = min(tiles, kAlone); group <= kAlone; ++group) mma::finish_copies();
  }
  static __device__ void await(int tile) {
    if (tile == 0) mma::wait_copies<3>();
    if (tile == 1) mma::wait_copies<2>();
    if (tile == 2) mma::wait_copies<1>();
    if (tile == 3) mma::wait_copies<0>();
    keep_order();
  }
  // The compiler sees nobody write to the row, so it must be told not to read before a wait or behind a copy.
  static __device__ void keep_order() { asm volatile("" ::: "memory"); }
};

}  // namespace brrr::kernels
