// Tile functions of two and three operands, compiled once for each CPU target by foreach_target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/kernels/cpu/elementwise/binary_cpu.cpp"
#include "brrr/kernels/cpu/elementwise/binary_tiles.h"
#include "brrr/kernels/scalar/functor_traits.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE {
using namespace functors;

template <typename F, typename T>
void binary_loop(const TileCall& call) {
  const T* a = static_cast<const T*>(call.inputs[0]);
  const T* b = static_cast<const T*>(call.inputs[1]);
  T* y =
      static_cast<T*>(call.output);  // may be a or b itself: element i is read before it is written
  for (int64_t i = 0; i < call.count; ++i) y[i] = F::of(a[i], b[i]);
}

template <typename F, typename T>
void ternary_loop(const TileCall& call) {
  const T* a = static_cast<const T*>(call.inputs[0]);
  const T* b = static_cast<const T*>(call.inputs[1]);
  const T* c = static_cast<const T*>(call.inputs[2]);
  T* y = static_cast<T*>(call.output);
  for (int64_t i = 0; i < call.count; ++i) y[i] = F::of(a[i], b[i], c[i]);
}

template <typename F, typename T>
constexpr TileFn tile() {
  if constexpr (!ComputesIn<F, T>) {
    return nullptr;
  } else {
    static_assert(kOperands<F, T> == 2 || kOperands<F, T> == 3,
                  "the table of functions of two and three operands");
    if constexpr (kOperands<F, T> == 2)
      return &binary_loop<F, T>;
    else
      return &ternary_loop<F, T>;
  }
}

TileKernels binary_table(Binary function) {
#define BRRR_ROW(name, functor, chain)                                        \
  {tile<functor, float>(), tile<functor, double>(), tile<functor, int64_t>(), \
   tile<functor, uint64_t>(), ChainCode::chain},
  static constexpr TileKernels kTiles[] = {BRRR_BINARY_FUNCTIONS(BRRR_ROW)};
#undef BRRR_ROW
  return kTiles[static_cast<size_t>(function)];
}

}  // namespace brrr::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr::kernels {
HWY_EXPORT(binary_table);
TileKernels find_binary_tiles(Binary function) {
  return HWY_DYNAMIC_DISPATCH(binary_table)(function);
}
}  // namespace brrr::kernels
#endif
