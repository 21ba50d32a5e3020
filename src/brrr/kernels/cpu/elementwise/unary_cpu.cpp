// Tile functions of one operand, compiled once for each CPU target by Highway's foreach_target.
// Plain loops over branch-free functions, which g++ vectorises.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/kernels/cpu/elementwise/unary_cpu.cpp"
#include <bit>

#include "brrr/kernels/cpu/elementwise/unary_tiles.h"
#include "brrr/kernels/scalar/unary_settings.h"
#include "brrr/tensor/element.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE {
using namespace functors;

template <typename F, typename T>
void unary_loop(const TileCall& call) {
  const T* HWY_RESTRICT x = static_cast<const T*>(call.inputs[0]);
  T* HWY_RESTRICT y = static_cast<T*>(call.output);
  for (int64_t i = 0; i < call.count; ++i) y[i] = F::of(x[i]);
}

template <typename F, typename T>
void setting_loop(const TileCall& call) {
  const T* HWY_RESTRICT x = static_cast<const T*>(call.inputs[0]);
  T* HWY_RESTRICT y = static_cast<T*>(call.output);
  const Settings settings = read_settings<F>(*call.attrs);
  const T first = convert_element<T>(settings[0]), second = convert_element<T>(settings[1]);
  for (int64_t i = 0; i < call.count; ++i) {
    if constexpr (kSettings<F> == 1)
      y[i] = F::of(x[i], first);
    else
      y[i] = F::of(x[i], first, second);
  }
}

// sin and cos of huge arguments need a reduction that does not vectorise: the loop takes all for small ones
// and notes the largest (bits of floats without their sign are in the order of their sizes, NaN last), and a
// tile that has a huge one goes over those again.
template <typename F, typename T>
void trigonometric_loop(const TileCall& call) {
  using Bits = math::BitsOf<T>;
  const T* HWY_RESTRICT x = static_cast<const T*>(call.inputs[0]);
  T* HWY_RESTRICT y = static_cast<T*>(call.output);
  Bits largest = 0;
  for (int64_t i = 0; i < call.count; ++i) {
    const Bits size = std::bit_cast<Bits>(x[i]) & ~math::Format<T>::sign_bit;
    largest = largest < size ? size : largest;
    y[i] = F::of_reduced(x[i]);
  }
  if (largest <= std::bit_cast<Bits>(math::kTrigLimit<T>)) return;
  for (int64_t i = 0; i < call.count; ++i) {
    if (!(std::fabs(x[i]) <= math::kTrigLimit<T>)) y[i] = F::of(x[i]);
  }
}

template <typename F, typename T>
constexpr TileFn tile() {
  if constexpr (!ComputesIn<F, T>) {
    return nullptr;
  } else {
    static_assert(kOperands<F, T> == 1, "the table of functions of one operand");
    if constexpr (kSettings<F> != 0)
      return &setting_loop<F, T>;
    else if constexpr (requires(T x) { F::of_reduced(x); })
      return &trigonometric_loop<F, T>;
    else
      return &unary_loop<F, T>;
  }
}

TileKernels unary_table(Unary function) {
#define BRRR_ROW(name, functor, chain)                                        \
  {tile<functor, float>(), tile<functor, double>(), tile<functor, int64_t>(), \
   tile<functor, uint64_t>(), ChainCode::chain},
  static constexpr TileKernels kTiles[] = {BRRR_UNARY_FUNCTIONS(BRRR_ROW)};
#undef BRRR_ROW
  return kTiles[static_cast<size_t>(function)];
}

}  // namespace brrr::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr::kernels {
HWY_EXPORT(unary_table);
TileKernels find_unary_tiles(Unary function) { return HWY_DYNAMIC_DISPATCH(unary_table)(function); }
}  // namespace brrr::kernels
#endif
