// Tile functions of two and three operands, compiled once for each CPU target by foreach_target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/ops/binary_cpu.cpp"
#include "brrr/ops/binary_functors.h"
#include "brrr/ops/binary_tiles.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::HWY_NAMESPACE {
using namespace functors;

template <typename F, typename T>
void binary_loop(const TileCall& call) {
  const T* a = static_cast<const T*>(call.inputs[0]);
  const T* b = static_cast<const T*>(call.inputs[1]);
  T* y =
      static_cast<T*>(call.output);  // may be a or b itself: element i is read before it is written
  for (int64_t i = 0; i < call.count; ++i) y[i] = F::of(a[i], b[i]);
}

template <typename T>
void where_loop(const TileCall& call) {
  const T* condition = static_cast<const T*>(call.inputs[0]);
  const T* a = static_cast<const T*>(call.inputs[1]);
  const T* b = static_cast<const T*>(call.inputs[2]);
  T* y = static_cast<T*>(call.output);
  for (int64_t i = 0; i < call.count; ++i) y[i] = Where::of(condition[i], a[i], b[i]);
}

template <typename F>
constexpr TileKernels pair_tiles(ChainCode chain = ChainCode::none) {
  return {&binary_loop<F, float>, &binary_loop<F, double>, &binary_loop<F, int64_t>, chain};
}

TileKernels binary_table(Binary function) {
  switch (function) {
    case Binary::add: return pair_tiles<Add>(ChainCode::add);
    case Binary::sub: return pair_tiles<Sub>(ChainCode::sub);
    case Binary::mul: return pair_tiles<Mul>(ChainCode::mul);
    case Binary::div:
      return {&binary_loop<Div, float>, &binary_loop<Div, double>, nullptr, ChainCode::div};
    case Binary::pow: return pair_tiles<Pow>();
    case Binary::maximum: return pair_tiles<Maximum>(ChainCode::maximum);
    case Binary::minimum: return pair_tiles<Minimum>(ChainCode::minimum);
    case Binary::equal: return pair_tiles<Equal>();
    case Binary::not_equal: return pair_tiles<NotEqual>();
    case Binary::less: return pair_tiles<Less>();
    case Binary::less_equal: return pair_tiles<LessEqual>();
    case Binary::greater: return pair_tiles<Greater>();
    case Binary::greater_equal: return pair_tiles<GreaterEqual>();
    case Binary::where: return {&where_loop<float>, &where_loop<double>, &where_loop<int64_t>};
    case Binary::fmod: return pair_tiles<Fmod>();
    case Binary::remainder: return pair_tiles<Remainder>();
    case Binary::logical_and: return pair_tiles<LogicalAnd>();
    case Binary::logical_or: return pair_tiles<LogicalOr>();
    case Binary::logical_xor: return pair_tiles<LogicalXor>();
  }
  return {};
}

}  // namespace brrr::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr {
HWY_EXPORT(binary_table);
TileKernels find_binary_tiles(Binary function) {
  return HWY_DYNAMIC_DISPATCH(binary_table)(function);
}
}  // namespace brrr
#endif
