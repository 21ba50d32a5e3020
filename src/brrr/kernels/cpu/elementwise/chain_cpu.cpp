// Chains for each CPU target. One step through the list of ops serves kVectors vectors, so that the jump
// to an op's code is paid once for 128 elements (AVX-512) and foreseen, the list being always the same.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/kernels/cpu/elementwise/chain_cpu.cpp"
#include <algorithm>

#include "brrr/kernels/cpu/elementwise/chain_tiles.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
#if HWY_TARGET <= HWY_AVX3
constexpr int kVectors = 8;  // of 32 registers
#else
constexpr int kVectors = 4;
#endif

// The formulas of kernels/scalar/unary_functors.h and kernels/scalar/binary_functors.h.
HWY_INLINE V apply(ChainCode code, V a, V b) {
  const D d;
  switch (code) {
    case ChainCode::add: return hn::Add(a, b);
    case ChainCode::sub: return hn::Sub(a, b);
    case ChainCode::mul: return hn::Mul(a, b);
    case ChainCode::div: return hn::Div(a, b);
    case ChainCode::maximum: return hn::IfThenElse(hn::Or(hn::Ge(a, b), hn::IsNaN(a)), a, b);
    case ChainCode::minimum: return hn::IfThenElse(hn::Or(hn::Le(a, b), hn::IsNaN(a)), a, b);
    case ChainCode::neg: return hn::Neg(a);
    case ChainCode::abs: return hn::Abs(a);
    case ChainCode::square: return hn::Mul(a, a);
    case ChainCode::relu: return hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Zero(d), a);
    case ChainCode::sqrt: return hn::Sqrt(a);
    case ChainCode::reciprocal: return hn::Div(hn::Set(d, 1.0F), a);
    case ChainCode::none: break;
  }
  return a;
}

// Where the other operand of an op is for the block at hand.
struct Other {
  const float* at = nullptr;  // null: the op has one operand
  bool is_constant = false;
  bool is_left = false;  // code(other, value)
};

// One op on all registers of the block; the code is a constant here, so each has loops of its own.
template <ChainCode kCode, int kCount>
HWY_INLINE void step(V (&v)[kCount], const Other& other) {
  const D d;
  constexpr auto kLanes = static_cast<int>(hn::MaxLanes(D()));
  const auto with = [&](const auto& load) HWY_ATTR {
    if (other.is_left) {
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i) v[i] = apply(kCode, load(i), v[i]);
    } else {
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i) v[i] = apply(kCode, v[i], load(i));
    }
  };
  if (other.at == nullptr) {
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) v[i] = apply(kCode, v[i], v[i]);
  } else if (other.is_constant) {
    const V constant = hn::Set(d, *other.at);
    with([&](int) HWY_ATTR { return constant; });
  } else {
    with([&](int i) HWY_ATTR { return hn::LoadU(d, other.at + i * kLanes); });
  }
}

template <int kCount>
HWY_INLINE void run_op(ChainCode code, V (&v)[kCount], const Other& other) {
  switch (code) {
    case ChainCode::add: return step<ChainCode::add, kCount>(v, other);
    case ChainCode::sub: return step<ChainCode::sub, kCount>(v, other);
    case ChainCode::mul: return step<ChainCode::mul, kCount>(v, other);
    case ChainCode::div: return step<ChainCode::div, kCount>(v, other);
    case ChainCode::maximum: return step<ChainCode::maximum, kCount>(v, other);
    case ChainCode::minimum: return step<ChainCode::minimum, kCount>(v, other);
    case ChainCode::neg: return step<ChainCode::neg, kCount>(v, other);
    case ChainCode::abs: return step<ChainCode::abs, kCount>(v, other);
    case ChainCode::square: return step<ChainCode::square, kCount>(v, other);
    case ChainCode::relu: return step<ChainCode::relu, kCount>(v, other);
    case ChainCode::sqrt: return step<ChainCode::sqrt, kCount>(v, other);
    case ChainCode::reciprocal: return step<ChainCode::reciprocal, kCount>(v, other);
    case ChainCode::none: return;
  }
}

bool is_constant(const ChainCall& call, int input) { return (call.constants >> input & 1) != 0; }

// Elements [begin, begin + kCount vectors).
template <int kCount>
HWY_INLINE void run_block(const ChainCall& call, int64_t begin) {
  const D d;
  constexpr auto kLanes = static_cast<int>(hn::MaxLanes(D()));
  V v[kCount];
  if (is_constant(call, 0)) {
    for (V& value : v) value = hn::Set(d, *call.inputs[0]);
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) v[i] = hn::LoadU(d, call.inputs[0] + begin + i * kLanes);
  }
  for (const ChainOp& op : call.ops) {
    Other other;
    if (op.input >= 0) {
      other.is_constant = is_constant(call, op.input);
      other.at = call.inputs[op.input] + (other.is_constant ? 0 : begin);
      other.is_left = op.reversed;
    }
    run_op<kCount>(op.code, v, other);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) hn::StoreU(v[i], d, call.output + begin + i * kLanes);
}

// Fewer elements than a vector has lanes: operands are copied to where a whole vector can be read.
void run_rest(const ChainCall& call, int64_t begin) {
  constexpr auto kLanes = static_cast<size_t>(hn::MaxLanes(D()));
  const auto rest = static_cast<size_t>(call.count - begin);
  alignas(64) float copies[kMaxChainInputs][kLanes];
  alignas(64) float result[kLanes];
  const float* inputs[kMaxChainInputs] = {};
  int count = 1;
  for (const ChainOp& op : call.ops) count = std::max(count, op.input + 1);
  for (int i = 0; i < count; ++i) {
    inputs[i] = call.inputs[i];
    if (is_constant(call, i)) continue;
    std::fill_n(copies[i], kLanes, 1.0F);
    std::copy_n(call.inputs[i] + begin, rest, copies[i]);
    inputs[i] = copies[i];
  }
  run_block<1>({call.ops, inputs, call.constants, result, static_cast<int64_t>(kLanes)}, 0);
  std::copy_n(result, rest, call.output + begin);
}

void run_chain_here(const ChainCall& call) {
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
  int64_t begin = 0;
  for (; begin + kVectors * kLanes <= call.count; begin += kVectors * kLanes)
    run_block<kVectors>(call, begin);
  for (; begin + kLanes <= call.count; begin += kLanes) run_block<1>(call, begin);
  if (begin < call.count) run_rest(call, begin);
}

}  // namespace brrr::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr::kernels {
HWY_EXPORT(run_chain_here);
void run_chain(const ChainCall& call) { HWY_DYNAMIC_DISPATCH(run_chain_here)(call); }
}  // namespace brrr::kernels
#endif
