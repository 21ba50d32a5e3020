// Scratch of sorts on a GPU, from counts alone, so that it is known where a program is only planned.
#pragma once

#include <algorithm>
#include <cstdint>

#include "brrr/kernels/cuda/gemm/matmul_operands.h"

namespace brrr::kernels {

// Keys and places, twice each: a pass reads one pair of buffers and writes the other.
inline int64_t sort_buffer_bytes(int64_t count, int64_t key_bytes) {
  return 2 * whole_lines(count * key_bytes) + 2 * whole_lines(count * 4);
}

// What CUB's radix sort may ask for: a second copy of keys and places, the counts that its passes look back at
// (256 of 4 bytes per tile, and tiles have more than 2048 pairs), and a fixed part for histograms. CUB refuses a sort
// that was given less than it needs.
inline int64_t sort_scratch_bytes(int64_t count, int64_t key_bytes) {
  constexpr int64_t kFixed = int64_t{1} << 18;
  return whole_lines(count * (key_bytes + 4) + count / 2 + kFixed);
}

// Of sort and topk: by value in 64-bit keys, then by row in 32-bit keys. Both passes share scratch; the second needs
// places of its own.
struct SortMemory {
  int64_t first, second, scratch;
  explicit SortMemory(int64_t count)
      : first(sort_buffer_bytes(count, 8)),
        second(sort_buffer_bytes(count, 4)),
        scratch(std::max(sort_scratch_bytes(count, 8), sort_scratch_bytes(count, 4))) {}
  int64_t total() const { return first + second + scratch; }
};

// Of embedding_grad: sorted ids, where the ids of each row begin, and sums of pieces of rows with many ids.
struct EmbeddingGradMemory {
  static constexpr int64_t kPiece = 64;  // ids
  int64_t pairs, starts, slots, sorting;
  EmbeddingGradMemory(int64_t count, int64_t rows, int64_t dim)
      : pairs(sort_buffer_bytes(count, 4)),
        starts(whole_lines((rows + 1) * 4)),
        slots(whole_lines(pieces(count) * 2 * dim * 4)),
        sorting(sort_scratch_bytes(count, 4)) {}
  static int64_t pieces(int64_t count) { return (count + kPiece - 1) / kPiece; }
  int64_t total() const { return pairs + starts + slots + sorting; }
};

}  // namespace brrr::kernels
