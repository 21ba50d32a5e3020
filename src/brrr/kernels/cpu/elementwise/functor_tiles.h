// Tiles of an op that is defined outside of this tree, from its functor (kernels/scalar/functor_traits.h):
//   struct Cube {
//     template <typename T>
//     static T of(T x) { return x * x * x; }
//   };
//   ... .tiles = tiles_of<Cube>, .cpu = run_elementwise ...
// The loops are compiled with the flags of the source that names them, and vectorised where `of` has no branch.
// brrr's own are compiled for every CPU target instead (unary_cpu.cpp, binary_cpu.cpp).
#pragma once

#include "brrr/graph/op_def.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/kernels/scalar/functor_traits.h"

namespace brrr::kernels {

// The output may be one of the inputs: element i is read before it is written.
template <typename F, typename T>
void functor_loop(const TileCall& call) {
  const auto input = [&](int i) { return static_cast<const T*>(call.inputs[i]); };
  T* y = static_cast<T*>(call.output);
  for (int64_t i = 0; i < call.count; ++i) {
    if constexpr (functors::kOperands<F, T> == 1)
      y[i] = F::of(input(0)[i]);
    else if constexpr (functors::kOperands<F, T> == 2)
      y[i] = F::of(input(0)[i], input(1)[i]);
    else
      y[i] = F::of(input(0)[i], input(1)[i], input(2)[i]);
  }
}

template <typename F, typename T>
constexpr TileFn functor_tile() {
  if constexpr (functors::ComputesIn<F, T>)
    return functor_loop<F, T>;
  else
    return nullptr;
}

template <typename F>
TileKernels tiles_of() {
  static_assert(functors::kSettings<F> == 0, "settings are for brrr's own functors");
  return {functor_tile<F, float>(), functor_tile<F, double>(), functor_tile<F, int64_t>(),
          functor_tile<F, uint64_t>()};
}

}  // namespace brrr::kernels
