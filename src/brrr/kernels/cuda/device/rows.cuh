// Rows along the last axis that lie in order at whole 16-byte chunks: 16 bytes a thread an access, a row kept in
// the registers of its team. Memory must not wait for reductions: a team has a few rows and is done, so that others
// begin, or it stays and has the chunks of its next row under way while this one is worked on. Rows that are not so
// are in rows_plain.cuh.
#pragma once

#include <optional>
#include <type_traits>

#include "brrr/device/cuda/check.h"
#include "brrr/kernels/cuda/device/thread_groups.cuh"

namespace brrr::kernels {

template <typename T>
inline constexpr int kChunk = 16 / static_cast<int>(sizeof(T));  // elements of 16 bytes

template <typename T>
__device__ void unpack_chunk(const uint4& words, float (&values)[kChunk<T>]) {
  const T* const elements = reinterpret_cast<const T*>(&words);
#pragma unroll
  for (int i = 0; i < kChunk<T>; ++i) values[i] = convert_fast<float>(elements[i]);
}
template <typename T>
__device__ uint4 pack_chunk(const float (&values)[kChunk<T>]) {
  uint4 words;
  T* const elements = reinterpret_cast<T*>(&words);
#pragma unroll
  for (int i = 0; i < kChunk<T>; ++i) elements[i] = convert_fast<T>(values[i]);
  return words;
}

// ---- Where rows begin.

// Rows at one pitch, or, where `inner` is not 0, `inner` of them at a pitch within every `outer_pitch`.
struct RowStarts {
  std::byte* base;
  int64_t pitch, outer_pitch;
  uint32_t inner;

  template <typename T>
  __device__ uint4* of(int64_t row) const {
    int64_t at = row * pitch;
    if (inner != 0) {
      const auto r = static_cast<uint32_t>(row);
      at = r / inner * outer_pitch + r % inner * pitch;
    }
    return reinterpret_cast<uint4*>(reinterpret_cast<T*>(base) + at);
  }
};

// None where the rows of an operand are not whole chunks, or lie at more than two pitches.
inline std::optional<RowStarts> row_starts(const Operand& x) {
  const int64_t bytes = bit_size(x.dtype) / 8;
  std::byte* const base = Elements(x).base;
  if (!is_float(x.dtype) || x.layout->strides.back() != 1) return {};
  bool whole = x.shape().back() * bytes % 16 == 0 && reinterpret_cast<uintptr_t>(base) % 16 == 0;
  for (int axis = 0; axis + 1 < x.layout->rank(); ++axis)
    whole = whole && x.layout->strides[axis] * bytes % 16 == 0;
  Layout outer = *x.layout;
  outer.shape.pop_back();
  outer.strides.pop_back();
  const Walk walk = walk_of(outer);
  if (!whole || walk.rank > 2 || (walk.rank == 2 && !walk.narrow)) return {};
  if (walk.rank < 2)
    return RowStarts{
        .base = base, .pitch = walk.rank == 0 ? 0 : walk.strides[0], .outer_pitch = 0, .inner = 0};
  return RowStarts{.base = base,
                   .pitch = walk.strides[1],
                   .outer_pitch = walk.strides[0],
                   .inner = static_cast<uint32_t>(walk.sizes[1])};
}

// ---- A row in registers.

// Chunks rank, rank + size, ... of a row as they are in memory; `Steps` of them at most.
template <typename T, int Steps, typename TeamType>
struct CachedRow {
  static constexpr int kSteps = Steps, kPlaces = Steps * kChunk<T>;
  static constexpr bool kIsOfWarp = std::is_same_v<TeamType, WarpTeam>;
  using Element = T;
  using Team = TeamType;
  uint4 words[Steps];

  __device__ void load(const uint4* from, int chunks, uint4 absent = {0, 0, 0, 0}) {
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      const int chunk = s * Team::size() + Team::rank();
      words[s] = chunk < chunks ? from[chunk] : absent;
    }
  }
  __device__ void unpack(float (&values)[Steps][kChunk<T>]) const {
#pragma unroll
    for (int s = 0; s < Steps; ++s) unpack_chunk<T>(words[s], values[s]);
  }

  // visit(s, chunk) for the chunks of this thread; s is known at compile time.
  template <typename Visit>
  static __device__ void for_each_chunk(int chunks, const Visit& visit) {
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      const int chunk = s * Team::size() + Team::rank();
      if (chunk < chunks) visit(s, chunk);
    }
  }
  static __device__ void store(uint4* to, int chunks, const float (&values)[Steps][kChunk<T>]) {
    for_each_chunk(chunks, [&](int s, int chunk) { to[chunk] = pack_chunk<T>(values[s]); });
  }
};

// ---- Launches.

struct RowLaunch {
  int threads;  // of a block
  int teams;    // of a block
};

inline RowLaunch block_of_chunks(int64_t chunks, int64_t steps) {
  const int64_t threads = (chunks + steps - 1) / steps;
  return {static_cast<int>((threads + 31) / 32 * 32), 1};
}

// Threads of the largest block that takes a row of this kind, for __launch_bounds__.
template <typename Row>
inline constexpr int kRowThreads = Row::kIsOfWarp     ? WarpTeam::kBlock
                                   : Row::kSteps <= 2 ? 512
                                                      : 1024;

// Calls body.template operator()<Row>(launch) with the type of rows of so many elements; false where they are
// too long. A warp has a row to itself up to 8 chunks a lane, so that nobody waits at a barrier.
template <typename T, int64_t MostChunks, typename Body>
bool visit_cached_rows(int64_t cols, const Body& body) {
  const int64_t chunks = cols / kChunk<T>;
  const RowLaunch warps{WarpTeam::kBlock, WarpTeam::kBlock / 32};
  const auto run = [&]<int Steps, typename Team>(const RowLaunch& launch) {
    body.template operator()<CachedRow<T, Steps, Team>>(launch);
    return true;
  };
  if (chunks <= 32) return run.template operator()<1, WarpTeam>(warps);
  if (chunks <= 64) return run.template operator()<2, WarpTeam>(warps);
  if (chunks <= 96) return run.template operator()<3, WarpTeam>(warps);
  if (chunks <= 128) return run.template operator()<4, WarpTeam>(warps);
  if (chunks <= 192) return run.template operator()<6, WarpTeam>(warps);
  if (chunks <= 256) return run.template operator()<8, WarpTeam>(warps);
  if (chunks <= 1024) return run.template operator()<2, BlockTeam>(block_of_chunks(chunks, 2));
  if constexpr (MostChunks > 1024) {
    if (chunks <= MostChunks)
      return run.template operator()<4, BlockTeam>(block_of_chunks(chunks, 4));
  }
  return false;
}

// Calls body.template operator()<T>() for the dtypes that rows of chunks have; false for others.
template <typename Body>
bool visit_chunked_dtype(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f32: return body.template operator()<float>();
    case DType::bf16: return body.template operator()<bf16>();
    case DType::f16: return body.template operator()<f16>();
    default: return false;
  }
}

// Blocks of teams that have `each` rows once.
inline unsigned all_blocks(const RowLaunch& launch, int64_t rows, int64_t each) {
  const int64_t in_block = launch.teams * each;
  return static_cast<unsigned>((rows + in_block - 1) / in_block);
}

// Blocks for `teams` teams of work: as many as are resident at once, each with several rows, or fewer.
template <typename Kernel>
unsigned resident_blocks(Kernel* kernel, const RowLaunch& launch, size_t shared_bytes,
                         int64_t teams) {
  int each = 0;
  cuda::require(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, launch.threads, shared_bytes),
      "cudaOccupancyMaxActiveBlocksPerMultiprocessor(", launch.threads, " threads)");
  const int64_t resident =
      int64_t{cuda::device_facts(cuda::current_device()).sm_count} * std::max(each, 1);
  return static_cast<unsigned>(
      std::clamp<int64_t>((teams + launch.teams - 1) / launch.teams, 1, resident));
}

}  // namespace brrr::kernels
