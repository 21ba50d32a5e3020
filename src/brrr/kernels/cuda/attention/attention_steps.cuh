// The steps of attention backward in one kernel (attention_mma_fused_grad_cuda.cu): which blocks of keys and tiles of
// queries a block of threads multiplies, in which order.
#pragma once

#include "brrr/kernels/cuda/attention/attention_mma.cuh"

namespace brrr::kernels::mma {

inline constexpr int kStepQueries = 64;                                    // of a tile
inline constexpr int kBlockRows = 128, kThreads = threads_of(kBlockRows);  // keys of a block

// Tiles of queries that may see a block of keys.
struct TileRange {
  int begin, end;
  __device__ TileRange(const AttentionShape& shape, const DeviceVisible& visible, int key_block) {
    const int first = key_block * kBlockRows, last = min(visible.length, first + kBlockRows) - 1;
    begin = visible.first_query(first) / kStepQueries;
    end = (visible.end_query(last, shape.queries) + kStepQueries - 1) / kStepQueries;
    if (last < first || begin * kStepQueries >= shape.queries) end = begin;
  }
};

// The steps of this block of threads, one after the other. Every other block of keys walks its tiles backwards: what
// was used last is used first again, while the cache still has it.
struct StepWalk {
  int unit, batch = 0, kv_head = 0, length = 0;  // of the keys
  int key_block = 0, head = 0, tile = 0;         // the head is one of its group
  int tile_first = 0, tile_last = 0;             // in the order of the walk
  int entered = -1;                              // how many blocks of keys came before

  __device__ StepWalk(const AttentionShape& shape, const cuda::FaultNote& note)
      : unit(static_cast<int>(blockIdx.x)) {
    if (!there(shape)) return;
    enter_unit(shape, note);
    find_block(shape, note);
  }
  __device__ bool there(const AttentionShape& shape) const {
    return unit < shape.batch * shape.kv_heads;
  }
  __device__ int query_head(int group) const { return kv_head * group + head; }
  __device__ bool is_first_of_block() const { return head == 0 && tile == tile_first; }
  __device__ bool is_last_of_block(int group) const {
    return head + 1 == group && tile == tile_last;
  }
  __device__ void advance(const AttentionShape& shape, const cuda::FaultNote& note, int group) {
    if (tile != tile_last) {
      tile += entered % 2 == 0 ? 1 : -1;
      return;
    }
    tile = tile_first;
    if (++head < group) return;
    head = 0;
    ++key_block;
    find_block(shape, note);
  }

 private:
  __device__ void enter_unit(const AttentionShape& shape, const cuda::FaultNote& note) {
    batch = unit / shape.kv_heads;
    kv_head = unit % shape.kv_heads;
    length = DeviceVisible::length_of(shape, batch, note);
    key_block = 0;
  }
  // The next block of keys, from this one on, that some query may see.
  __device__ void find_block(const AttentionShape& shape, const cuda::FaultNote& note) {
    for (;; ++key_block) {
      while (key_block * kBlockRows >= length) {
        unit += static_cast<int>(gridDim.x);
        if (!there(shape)) return;
        enter_unit(shape, note);
      }
      const TileRange tiles(shape, DeviceVisible(shape, batch, length), key_block);
      if (tiles.begin >= tiles.end) continue;
      const bool is_forward = ++entered % 2 == 0;
      tile = tile_first = is_forward ? tiles.begin : tiles.end - 1;
      tile_last = is_forward ? tiles.end - 1 : tiles.begin;
      return;
    }
  }
};

}  // namespace brrr::kernels::mma
