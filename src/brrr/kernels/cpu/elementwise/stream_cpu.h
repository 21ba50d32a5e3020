// Stores that go past the caches. A result larger than the caches is gone from them before anybody
// reads it; an ordinary store would still fetch every line from memory before it overwrites it, a
// third of the traffic of y = f(x).
#pragma once

#include <cstddef>
#include <cstdint>

namespace brrr::kernels {

// From this size on a result is streamed. Below, the next op is likely to find it in a cache.
inline constexpr int64_t kStreamBytes = int64_t{32} << 20;

// Copies `bytes` (a multiple of 4) past the caches, any alignment of 4. finish_stream() must follow
// on the same thread before another one reads the result.
void stream_copy(void* to, const void* from, int64_t bytes);
void finish_stream();

// Asks for bytes that will be read soon. Streamed stores and the reads of the next tile then overlap;
// the hardware looks no further than the end of a page, which is a tile of f32.
inline void prefetch_bytes(const std::byte* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i, /*write=*/0, /*locality=*/2);
}

}  // namespace brrr::kernels
