// What the kernels that follow ids share: tiles of a flat index space, and ids checked before anything
// is written.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"

namespace brrr::kernels {

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Calls visit(begin, count) for tiles that cover [0, elements), on all threads.
template <typename Visit>
void for_each_tile(ThreadPool& pool, int64_t elements, const Visit& visit) {
  pool.for_each_piece(divide_up(elements, kPieceElements), [&](int64_t piece) {
    const int64_t end = std::min(elements, (piece + 1) * kPieceElements);
    for (int64_t tile = piece * kPieceElements; tile < end; tile += kTileElements) {
      visit(tile, std::min(kTileElements, end - tile));
    }
  });
}

inline LoopNest nest_of(const Shape& shape, std::initializer_list<const Layout*> layouts) {
  return make_nest(shape, {layouts.begin(), layouts.size()});
}

// Elements [begin, begin + count) of the flat index space as operand `o` sees them: their values in
// a compute type, or their positions behind the operand's first element.
void load_tile(const LoopNest& nest, int o, const Operand& operand, int64_t begin, int64_t count,
               ComputeType type, void* out);
void fill_positions(const LoopNest& nest, int o, int64_t begin, int64_t count, int64_t* out);

// Throws Error for the first index that names no place along `axis` of `shape`, calling it `noun`.
void check_indices(const KernelCall& call, const Operand& index, const Shape& shape, int axis,
                   std::string_view noun = "index");

}  // namespace brrr::kernels
