// Tile functions of two and three operands, compiled once for each CPU target by foreach_target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/ops/binary_cpu.cpp"
#include "brrr/base/scalar_math.h"
#include "brrr/ops/binary_tiles.h"
#include "brrr/ops/wrap.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::HWY_NAMESPACE {

struct Add {
  template <typename T>
  static T of(T a, T b) {
    return add_wrapping(a, b);
  }
};
struct Sub {
  template <typename T>
  static T of(T a, T b) {
    return sub_wrapping(a, b);
  }
};
struct Mul {
  template <typename T>
  static T of(T a, T b) {
    return mul_wrapping(a, b);
  }
};
struct Div {
  template <typename T>
  static T of(T a, T b) {
    return a / b;
  }
};
struct Pow {
  template <typename T>
  static T of(T a, T b) {
    if constexpr (std::integral<T>)
      return integer_power(a, b);
    else
      return math::pow(a, b);
  }
  // Squares and multiplies, wrapping. A negative exponent leaves 1/a^n rounded to zero, except +-1.
  static int64_t integer_power(int64_t base, int64_t exponent) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    int64_t result = 1;
    for (; exponent > 0; exponent >>= 1) {
      if (exponent & 1) result = mul_wrapping(result, base);
      base = mul_wrapping(base, base);
    }
    return result;
  }
};
struct Maximum {  // a >= b is false when either is NaN: then a if a is NaN, else b
  template <typename T>
  static T of(T a, T b) {
    return a >= b || a != a ? a : b;
  }
};
struct Minimum {
  template <typename T>
  static T of(T a, T b) {
    return a <= b || a != a ? a : b;
  }
};
struct Equal {
  template <typename T>
  static T of(T a, T b) {
    return a == b ? T(1) : T(0);
  }
};
struct NotEqual {
  template <typename T>
  static T of(T a, T b) {
    return a != b ? T(1) : T(0);
  }
};
struct Less {
  template <typename T>
  static T of(T a, T b) {
    return a < b ? T(1) : T(0);
  }
};
struct LessEqual {
  template <typename T>
  static T of(T a, T b) {
    return a <= b ? T(1) : T(0);
  }
};
struct Greater {
  template <typename T>
  static T of(T a, T b) {
    return a > b ? T(1) : T(0);
  }
};
struct GreaterEqual {
  template <typename T>
  static T of(T a, T b) {
    return a >= b ? T(1) : T(0);
  }
};

// An integer modulo 0 is refused before tiles run; here it is 0, because a trap has no words. So is
// anything modulo -1, where the smallest integer would overflow.
struct Fmod {
  template <typename T>
  static T of(T a, T b) {
    if constexpr (std::integral<T>)
      return b == 0 || b == -1 ? T(0) : a % b;
    else
      return std::fmod(a, b);
  }
};
struct Remainder {  // the sign of b, as in Python
  template <typename T>
  static T of(T a, T b) {
    const T rest = Fmod::of(a, b);
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
  }
};
struct LogicalAnd {
  template <typename T>
  static T of(T a, T b) {
    return (a != T(0)) & (b != T(0)) ? T(1) : T(0);
  }
};
struct LogicalOr {
  template <typename T>
  static T of(T a, T b) {
    return (a != T(0)) | (b != T(0)) ? T(1) : T(0);
  }
};
struct LogicalXor {
  template <typename T>
  static T of(T a, T b) {
    return (a != T(0)) != (b != T(0)) ? T(1) : T(0);
  }
};

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
  for (int64_t i = 0; i < call.count; ++i) y[i] = condition[i] != T(0) ? a[i] : b[i];
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
