// Exponentials of rows: what softmax and cross-entropy share.
#pragma once

#include "brrr/ops/rows.cuh"

namespace brrr {

inline constexpr float kLowest = -std::numeric_limits<float>::infinity();

// e^x. 16-bit rows have fewer bits than the instruction gets wrong, and lose what is below the normal range.
template <typename T>
__device__ float exp_of(float x) {
  if constexpr (sizeof(T) == 2) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 0x1.715476p0f));
    return result;
  } else {
    return expf(x);
  }
}

// Chunks of a long row that a thread has under way at once.
template <typename T>
using RowTile = CachedRow<T, 4, BlockTeam>;
inline constexpr int kTileThreads = 512;

// visit(tile, first) for the tiles of a row in turn; `first` is the number of the tile's first chunk.
template <typename T, typename Visit>
__device__ void for_each_tile(const uint4* from, int chunks, const Visit& visit) {
  for (int first = 0; first < chunks; first += RowTile<T>::kSteps * BlockTeam::size()) {
    RowTile<T> tile;
    tile.load(from + first, chunks - first);
    visit(tile, first);
  }
}

// The largest element so far, and the sum of e^(element - largest), in one pass.
template <typename T>
struct OnlineSum {
  float largest = kLowest, sum = 0;

  // The chunks of a tile that are there; others are -infinity.
  __device__ void add(const float (&values)[RowTile<T>::kSteps][kChunk<T>]) {
    const float before = largest;
#pragma unroll
    for (int s = 0; s < RowTile<T>::kSteps; ++s)
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i) largest = larger(largest, values[s][i]);
    // Elements of -infinity add nothing, and -infinity less itself would be NaN.
    const float base = largest == kLowest ? 0.0f : largest;
    float added = 0;
#pragma unroll
    for (int s = 0; s < RowTile<T>::kSteps; ++s)
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i) added += exp_of<T>(values[s][i] - base);
    sum = fmaf(sum, exp_of<T>(before - base), added);  // the first time 0 e^-infinity
  }
  // Of all threads.
  __device__ OnlineSum of_team(BlockTeam& team) const {
    const float all = team.max(largest);
    return {all, team.sum(largest == kLowest ? sum : sum * expf(largest - all))};
  }
};

}  // namespace brrr
