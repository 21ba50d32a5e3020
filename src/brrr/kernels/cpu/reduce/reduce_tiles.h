// The inner loops of reductions, for the CPU that this runs on; reduce_cpu.cpp arranges them.
//
// One order of additions for every layout: a reduction is cut into tiles of kTileElements; inside a
// tile element i belongs to lane i % kReduceLanes; lanes combine as a tree, tiles one after another in
// a wide accumulator. So a row gives the same bits whether it lies contiguous, strided or as a column,
// and whichever thread takes which tile.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

inline constexpr int kReduceLanes = 32;

enum class Reduction : uint8_t { sum, max, min, prod };

// Accumulators ("wide") are double for f32 and f64, int64_t for i64: eight bytes each.
struct ReduceKernels {
  // One tile of a contiguous row: writes one wide value.
  void (*row)(const void* values, int64_t count, void* wide);
  // Columns: lanes are arrays of `columns` values in the compute type.
  void (*start_lanes)(void* lanes, int64_t columns);
  void (*add_to_lane)(void* lane, const void* values, int64_t columns);
  void (*finish_lanes)(void* lanes, int64_t columns, void* wide);
  // All rows of a tile at once, `stride` elements apart: fills the lanes from nothing. Jumps from row to
  // row, so for tiles that are in the caches.
  void (*fill_lanes)(void* lanes, const void* values, int64_t stride, int64_t rows,
                     int64_t columns);
  // wide[i] = wide[i] (+) more[i]
  void (*combine)(void* wide, const void* more, int64_t count);
};

ReduceKernels find_reduce_kernels(Reduction reduction, ComputeType type);

}  // namespace brrr::kernels
