// Large blocks of host memory, kept for reuse. A fresh page costs a fault of the operating system (about
// half a microsecond for 4 KiB), more than most kernels spend computing what they put there; a training
// step frees and allocates the same sizes over and over. Blocks of 2 MiB and more ask for huge pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brrr {

inline constexpr size_t kLargeBlockBytes = size_t{256} << 10;  // smaller ones are malloc's

// Both may be called from any thread. The block starts on a page; nullptr when there is no memory.
void* take_block(size_t bytes);
void return_block(void* block, size_t bytes) noexcept;  // with the size it was taken with

// What is kept for reuse now, and giving it back to the operating system.
int64_t kept_block_bytes();
void release_kept_blocks();

}  // namespace brrr
