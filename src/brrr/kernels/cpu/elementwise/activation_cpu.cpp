#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/kernels/cpu/elementwise/activation_cpu.cpp"
#include "brrr/kernels/cpu/elementwise/activation_tiles.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE {
using namespace functors;

template <typename F, typename T>
void backward_loop(const TileCall& call) {
  const T* HWY_RESTRICT x = static_cast<const T*>(call.inputs[0]);
  const T* HWY_RESTRICT dy = static_cast<const T*>(call.inputs[1]);
  T* HWY_RESTRICT dx = static_cast<T*>(call.output);
  for (int64_t i = 0; i < call.count; ++i) dx[i] = F::of(x[i], dy[i]);
}

TileKernels activation_table(ActivationGrad function) {
#define BRRR_ROW(name, functor, chain)                                                \
  {&backward_loop<functor, float>, &backward_loop<functor, double>, nullptr, nullptr, \
   ChainCode::chain},
  static constexpr TileKernels kTiles[] = {BRRR_ACTIVATION_GRADS(BRRR_ROW)};
#undef BRRR_ROW
  return kTiles[static_cast<size_t>(function)];
}

}  // namespace brrr::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr::kernels {
HWY_EXPORT(activation_table);
TileKernels find_activation_backward_tiles(ActivationGrad function) {
  return HWY_DYNAMIC_DISPATCH(activation_table)(function);
}
}  // namespace brrr::kernels
#endif
