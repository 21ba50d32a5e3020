#include "brrr/tensor/dtype.h"

#include <limits>

namespace brrr {
namespace {

constexpr std::array<std::string_view, kDTypes> kNames = {
    "f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16",
    "i8",  "u32", "u16", "u8",   "bool",   "i4",     "u4",  "u64"};

// Sorts a dtype into the order in which PyTorch widens: bool < integer < float.
int category_rank(DType dtype) { return dtype == DType::boolean ? 0 : is_float(dtype) ? 2 : 1; }

bool is_unsigned(DType dtype) { return is_integer(dtype) && iinfo(dtype).min == 0; }

// Signed with unsigned: the smallest signed type that holds both (u8 with i8 becomes i16).
DType promote_integers(DType a, DType b, std::string_view op) {
  if (is_unsigned(a) == is_unsigned(b)) return bit_size(a) >= bit_size(b) ? a : b;
  const DType s = is_unsigned(a) ? b : a, u = is_unsigned(a) ? a : b;
  check(u != DType::u64, op, ": no integer dtype holds the values of both ", s,
        " and u64; cast one of them first");
  const int bits = bit_size(s) > bit_size(u) ? bit_size(s) : 2 * bit_size(u);
  return bits <= 8 ? DType::i8 : bits == 16 ? DType::i16 : bits == 32 ? DType::i32 : DType::i64;
}

// Two different floats of the same width have no common 16- or 8-bit type: f32 holds both.
DType promote_floats(DType a, DType b) {
  if (bit_size(a) == bit_size(b)) return DType::f32;
  return bit_size(a) > bit_size(b) ? a : b;
}

template <typename T>
IntLimits limits_of() {
  return {static_cast<int64_t>(std::numeric_limits<T>::min()),
          static_cast<uint64_t>(std::numeric_limits<T>::max())};
}

}  // namespace

std::string to_text(DType dtype) { return std::string(kNames[static_cast<size_t>(dtype)]); }

DType parse_dtype(std::string_view text) {
  for (DType dtype : kAllDTypes) {
    if (kNames[static_cast<size_t>(dtype)] == text) return dtype;
  }
  fail("unknown dtype \"", text,
       "\"; use one of f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u64 u32 u16 u8 bool i4 u4");
}

DType promote(DType a, DType b, std::string_view op) {
  if (a == b) return a;
  const int rank_a = category_rank(a), rank_b = category_rank(b);
  if (rank_a != rank_b) return rank_a > rank_b ? a : b;
  return rank_a == 2 ? promote_floats(a, b) : promote_integers(a, b, op);
}

FloatLimits finfo(DType dtype) {
  check(is_float(dtype), "finfo: ", dtype, " is not a float dtype; iinfo knows the integers");
  return visit_dtype(dtype, []<typename T>() -> FloatLimits {
    if constexpr (std::integral<T>)
      return {};
    else
      return {FloatInfo<T>::max, FloatInfo<T>::tiny, FloatInfo<T>::eps};
  });
}

IntLimits iinfo(DType dtype) {
  if (dtype == DType::i4) return {-8, 7};
  if (dtype == DType::u4) return {0, 15};
  check(is_integer(dtype), "iinfo: ", dtype, " is not an integer dtype; finfo knows the floats");
  return visit_dtype(dtype, []<typename T>() -> IntLimits {
    if constexpr (std::integral<T>) return limits_of<T>();
    return {0, 0};
  });
}

}  // namespace brrr
