// Exponentials of rows: what softmax and cross-entropy share.
#pragma once

#include "brrr/kernels/cuda/device/rows.cuh"

namespace brrr::kernels {

inline constexpr float kLowest = -std::numeric_limits<float>::infinity();

inline constexpr float kLog2E = 0x1.715476p0f;

__device__ inline float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// e^x. 16-bit rows have fewer bits than the instruction gets wrong, and lose what is below the normal range.
template <typename T>
__device__ float exp_of(float x) {
  return sizeof(T) == 2 ? exp2_fast(x * kLog2E) : expf(x);
}
// e^(x - base). The difference comes first: it is exact near the base, so that the largest element of a row has 1, and large
// elements neither lose bits nor overflow, as they would in x log2(e) - base log2(e).
template <typename T>
__device__ float exp_less(float x, float base) {
  return exp_of<T>(x - base);
}

// ---- The largest of a chunk's elements, and chunks of -infinity.

template <typename T>
inline constexpr uint32_t kLowestWord = std::is_same_v<T, float>  ? 0xff800000u
                                        : std::is_same_v<T, bf16> ? 0xff80ff80u
                                                                  : 0xfc00fc00u;
template <typename T>
__device__ uint4 lowest_chunk() {
  return {kLowestWord<T>, kLowestWord<T>, kLowestWord<T>, kLowestWord<T>};
}
// The elements of a chunk from number `there` on become -infinity.
template <typename T>
__device__ void cut_chunk(uint4& words, int there) {
  T* const elements = reinterpret_cast<T*>(&words);
  const uint4 lowest = lowest_chunk<T>();
#pragma unroll
  for (int i = 0; i < kChunk<T>; ++i)
    if (i >= there) elements[i] = reinterpret_cast<const T*>(&lowest)[0];
}
// Of two pairs of 16-bit elements; NaN wins.
template <typename T>
__device__ uint32_t larger_pair(uint32_t a, uint32_t b) {
  uint32_t result;
  if constexpr (std::is_same_v<T, bf16>)
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  else
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
template <typename T, int Steps>
__device__ float largest_of(const uint4 (&words)[Steps]) {
  float largest = kLowest;
  if constexpr (sizeof(T) == 2) {  // half as many instructions as one by one
    uint32_t pair = kLowestWord<T>;
#pragma unroll
    for (const uint4& w : words)
      pair =
          larger_pair<T>(pair, larger_pair<T>(larger_pair<T>(w.x, w.y), larger_pair<T>(w.z, w.w)));
    const T* const both = reinterpret_cast<const T*>(&pair);
    largest = larger(convert_fast<float>(both[0]), convert_fast<float>(both[1]));
  } else {
#pragma unroll
    for (const uint4& w : words) {
      float values[kChunk<T>];
      unpack_chunk<T>(w, values);
#pragma unroll
      for (float value : values) largest = larger(largest, value);
    }
  }
  return largest;
}

// ---- Long rows.

// Chunks of a long row that a thread has under way at once.
template <typename T, int Steps>
using RowTile = CachedRow<T, Steps, BlockTeam>;
inline constexpr int kTileThreads = 512;

// visit(tile, first) for the tiles of a row in turn; `first` is the number of the tile's first chunk. Chunks that are
// not there are -infinity.
template <typename T, int Steps, typename Visit>
__device__ void for_each_tile(const uint4* from, int chunks, const Visit& visit) {
  for (int first = 0; first < chunks; first += Steps * BlockTeam::size()) {
    RowTile<T, Steps> tile;
    tile.load(from + first, chunks - first, lowest_chunk<T>());
    visit(tile, first);
  }
}

// The largest element so far, and the sum of e^(element - largest), in one pass.
template <typename T>
struct OnlineSum {
  float largest = kLowest, sum = 0;

  template <int Steps>
  __device__ void add(const uint4 (&words)[Steps]) {
    const float before = largest;
    largest = larger(largest, largest_of<T>(words));
    // Elements of -infinity add nothing, and -infinity less itself would be NaN.
    const float base = largest == kLowest ? 0.0f : largest;
    float added[2] = {};  // two sums: half as long a chain
#pragma unroll
    for (const uint4& w : words) {
      float values[kChunk<T>];
      unpack_chunk<T>(w, values);
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i) added[i % 2] += exp_less<T>(values[i], base);
    }
    // The first time 0 e^-infinity.
    sum = fmaf(sum, exp_of<T>(before - base), added[0] + added[1]);
  }
  // Of all threads.
  __device__ OnlineSum of_team(BlockTeam& team) const {
    const float all = team.max(largest);
    return {all, team.sum(largest == kLowest ? sum : sum * expf(largest - all))};
  }
};

}  // namespace brrr::kernels
