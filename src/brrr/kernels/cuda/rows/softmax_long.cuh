// Softmax and log_softmax of rows that are longer than registers hold: from shared memory, or read twice, the second time
// mostly from the cache.
#pragma once

#include "brrr/kernels/cuda/device/staged_rows.cuh"

namespace brrr::kernels {

// x and y forward; y, dy and dx backward.
struct SoftmaxRowsCall {
  RowStarts a, b, c;
  int64_t rows;
  int chunks;
};

// The result of a chunk, from the row's largest element and its sum's inverse or logarithm.
template <typename T, bool Logarithm>
__device__ uint4 softmax_of(const uint4& words, float largest, float last) {
  float v[kChunk<T>];
  unpack_chunk<T>(words, v);
#pragma unroll
  for (float& value : v) {
    value -= largest;
    value = Logarithm ? value - last : exp_of<T>(value) * last;
  }
  return pack_chunk<T>(v);
}

template <typename T, bool Logarithm>
__global__ void __launch_bounds__(kTileThreads) softmax_long_kernel(SoftmaxRowsCall call) {
  constexpr int kSteps = 4;
  using Tile = RowTile<T, kSteps>;
  const int chunks = call.chunks;
  BlockTeam team;
  for (int64_t r = team.index(); r < call.rows; r += team.count()) {
    const uint4* const from = call.a.of<T>(r);
    uint4* const to = call.b.of<T>(r);
    OnlineSum<T> own;
    for_each_tile<T, kSteps>(from, chunks, [&](const Tile& tile, int) { own.add(tile.words); });
    const OnlineSum<T> all = own.of_team(team);
    const float last = Logarithm ? logf(all.sum) : 1 / all.sum;
    for_each_tile<T, kSteps>(from, chunks, [&](const Tile& tile, int first) {
      Tile::for_each_chunk(chunks - first, [&](int s, int chunk) {
        to[first + chunk] = softmax_of<T, Logarithm>(tile.words[s], all.largest, last);
      });
    });
  }
}

// The same of rows that shared memory holds; there are no more blocks than rows.
template <typename T, bool Logarithm>
__global__ void __launch_bounds__(kTileThreads) softmax_staged_kernel(SoftmaxRowsCall call) {
  constexpr int kSteps = 2;
  using Tile = RowTile<T, kSteps>;
  extern __shared__ uint4 row[];
  const int chunks = call.chunks, tile_chunks = kSteps * BlockTeam::size(),
            tiles = (chunks + tile_chunks - 1) / tile_chunks;
  BlockTeam team;
  const auto fetch = [&](const uint4* from, int chunk) {
    CopyGroups::keep_order();
    mma::copy_chunk(row + chunk, from + chunk, true);
  };
  for (int tile = 0; tile < tiles; ++tile) {
    const int first = tile * tile_chunks;
    Tile::for_each_chunk(chunks - first,
                         [&](int, int chunk) { fetch(call.a.of<T>(team.index()), first + chunk); });
    CopyGroups::close_tile(tile);
  }
  CopyGroups::close_row(tiles);
  for (int64_t r = team.index(); r < call.rows; r += team.count()) {
    const bool is_last = r + team.count() >= call.rows;
    const uint4* const next = is_last ? nullptr : call.a.of<T>(r + team.count());
    uint4* const to = call.b.of<T>(r);
    OnlineSum<T> own;
    for (int tile = 0; tile < tiles; ++tile) {
      CopyGroups::await(tile);
      const int first = tile * tile_chunks;
      Tile there;
      there.load(row + first, chunks - first, lowest_chunk<T>());
      own.add(there.words);
    }
    const OnlineSum<T> all = own.of_team(team);
    const float last = Logarithm ? logf(all.sum) : 1 / all.sum;
    for (int tile = 0; tile < tiles; ++tile) {
      const int first = tile * tile_chunks;
      Tile there;
      there.load(row + first, chunks - first);
      Tile::for_each_chunk(chunks - first, [&](int s, int chunk) {
        to[first + chunk] = softmax_of<T, Logarithm>(there.words[s], all.largest, last);
        if (!is_last) fetch(next, first + chunk);
      });
      CopyGroups::close_tile(tile);
    }
    CopyGroups::close_row(tiles);
  }
}

// Blocks at once for long rows: few enough that the cache holds the rows until they are read again.
inline int64_t long_row_blocks(int64_t rows, const Chip& chip) {
  return std::min<int64_t>(rows, 2 * chip.sm_count);
}

template <typename T, bool Logarithm>
void run_long_rows(const CudaCall& call, const SoftmaxRowsCall& rows_call) {
  const int64_t bytes = int64_t{rows_call.chunks} * static_cast<int64_t>(sizeof(uint4));
  if (bytes > most_staged_bytes()) {
    softmax_long_kernel<T, Logarithm>
        <<<static_cast<unsigned>(long_row_blocks(rows_call.rows, call.chip)), kTileThreads, 0,
           call.stream>>>(rows_call);
    return;
  }
  const auto kernel = softmax_staged_kernel<T, Logarithm>;
  const auto shared_bytes = static_cast<size_t>(bytes);
  allow_shared_bytes(kernel, shared_bytes, "softmax");
  kernel<<<resident_blocks(kernel, {kTileThreads, 1}, shared_bytes, rows_call.rows), kTileThreads,
           shared_bytes, call.stream>>>(rows_call);
}

}  // namespace brrr::kernels
