// Chains for each CPU target. One step through the list of ops serves kVectors vectors, so that the jump
// to an op's code is paid once for 128 elements (AVX-512) and foreseen, the list being always the same.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/ops/chain_cpu.cpp"
#include <cmath>

#include "brrr/ops/chain_tiles.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
#if HWY_TARGET <= HWY_AVX3
constexpr int kVectors = 8;  // of 32 registers
#else
constexpr int kVectors = 4;
#endif

// The formulas of ops/unary_cpu.cpp and ops/binary_cpu.cpp.
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

float apply_one(ChainCode code, float a, float b) {
  switch (code) {
    case ChainCode::add: return a + b;
    case ChainCode::sub: return a - b;
    case ChainCode::mul: return a * b;
    case ChainCode::div: return a / b;
    case ChainCode::maximum: return a >= b || a != a ? a : b;
    case ChainCode::minimum: return a <= b || a != a ? a : b;
    case ChainCode::neg: return -a;
    case ChainCode::abs: return std::fabs(a);
    case ChainCode::square: return a * a;
    case ChainCode::relu: return a < 0 ? 0 : a;
    case ChainCode::sqrt: return std::sqrt(a);
    case ChainCode::reciprocal: return 1 / a;
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
template <ChainCode kCode>
HWY_INLINE void step(V (&v)[kVectors], const Other& other) {
  const D d;
  constexpr auto kLanes = static_cast<int>(hn::MaxLanes(D()));
  const auto with = [&](const auto& load) HWY_ATTR {
    if (other.is_left) {
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) v[i] = apply(kCode, load(i), v[i]);
    } else {
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) v[i] = apply(kCode, v[i], load(i));
    }
  };
  if (other.at == nullptr) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) v[i] = apply(kCode, v[i], v[i]);
  } else if (other.is_constant) {
    const V constant = hn::Set(d, *other.at);
    with([&](int) HWY_ATTR { return constant; });
  } else {
    with([&](int i) HWY_ATTR { return hn::LoadU(d, other.at + i * kLanes); });
  }
}

HWY_INLINE void run_op(ChainCode code, V (&v)[kVectors], const Other& other) {
  switch (code) {
    case ChainCode::add: return step<ChainCode::add>(v, other);
    case ChainCode::sub: return step<ChainCode::sub>(v, other);
    case ChainCode::mul: return step<ChainCode::mul>(v, other);
    case ChainCode::div: return step<ChainCode::div>(v, other);
    case ChainCode::maximum: return step<ChainCode::maximum>(v, other);
    case ChainCode::minimum: return step<ChainCode::minimum>(v, other);
    case ChainCode::neg: return step<ChainCode::neg>(v, other);
    case ChainCode::abs: return step<ChainCode::abs>(v, other);
    case ChainCode::square: return step<ChainCode::square>(v, other);
    case ChainCode::relu: return step<ChainCode::relu>(v, other);
    case ChainCode::sqrt: return step<ChainCode::sqrt>(v, other);
    case ChainCode::reciprocal: return step<ChainCode::reciprocal>(v, other);
    case ChainCode::none: return;
  }
}

bool is_constant(const ChainCall& call, int input) { return (call.constants >> input & 1) != 0; }

void run_tail(const ChainCall& call, int64_t begin) {
  for (int64_t i = begin; i < call.count; ++i) {
    const auto input = [&](int index) {
      return call.inputs[index][is_constant(call, index) ? 0 : i];
    };
    float value = input(0);
    for (const ChainOp& op : call.ops) {
      const float other = op.input < 0 ? value : input(op.input);
      value = op.reversed ? apply_one(op.code, other, value) : apply_one(op.code, value, other);
    }
    call.output[i] = value;
  }
}

void run_chain_here(const ChainCall& call) {
  const D d;
  constexpr auto kLanes = static_cast<int>(hn::MaxLanes(D()));
  constexpr int64_t kBlock = kVectors * kLanes;
  int64_t begin = 0;
  for (; begin + kBlock <= call.count; begin += kBlock) {
    V v[kVectors];
    if (is_constant(call, 0)) {
      for (V& value : v) value = hn::Set(d, *call.inputs[0]);
    } else {
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) v[i] = hn::LoadU(d, call.inputs[0] + begin + i * kLanes);
    }
    for (const ChainOp& op : call.ops) {
      Other other;
      if (op.input >= 0) {
        other.is_constant = is_constant(call, op.input);
        other.at = call.inputs[op.input] + (other.is_constant ? 0 : begin);
        other.is_left = op.reversed;
      }
      run_op(op.code, v, other);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) hn::StoreU(v[i], d, call.output + begin + i * kLanes);
  }
  run_tail(call, begin);
}

}  // namespace brrr::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr {
HWY_EXPORT(run_chain_here);
void run_chain(const ChainCall& call) { HWY_DYNAMIC_DISPATCH(run_chain_here)(call); }
}  // namespace brrr
#endif
