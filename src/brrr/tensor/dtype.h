// Element types: their sizes, limits, names, and which type a mix of them becomes.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "brrr/base/error.h"
#include "brrr/base/float_formats.h"

namespace brrr {

// i4 and u4 hold two values a byte and are for storage only: cast them before computing. u64 stands last: it came
// after the others had their numbers.
enum class DType : uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8e4m3,
  f8e5m2,
  i64,
  i32,
  i16,
  i8,
  u32,
  u16,
  u8,
  boolean,
  i4,
  u4,
  u64
};
inline constexpr int kDTypes = 17;
inline constexpr std::array<DType, kDTypes> kAllDTypes = {
    DType::f64, DType::f32, DType::f16,     DType::bf16, DType::f8e4m3, DType::f8e5m2,
    DType::i64, DType::i32, DType::i16,     DType::i8,   DType::u64,    DType::u32,
    DType::u16, DType::u8,  DType::boolean, DType::i4,   DType::u4};

// What arithmetic on a dtype is done in; every other dtype converts at load and store.
enum class ComputeType : uint8_t { f32, f64, i64, u64 };

std::string to_text(DType dtype);          // "f32", "bool", ...
DType parse_dtype(std::string_view text);  // the inverse; throws Error on anything else

constexpr bool is_float(DType dtype) { return dtype <= DType::f8e5m2; }
constexpr bool is_packed(DType dtype) { return dtype == DType::i4 || dtype == DType::u4; }
constexpr bool is_integer(DType dtype) { return !is_float(dtype) && dtype != DType::boolean; }
constexpr int bit_size(DType dtype) {
  constexpr std::array<int, kDTypes> bits = {64, 32, 16, 16, 8, 8, 64, 32, 16,
                                             8,  32, 16, 8,  8, 4, 4,  64};
  return bits[static_cast<size_t>(dtype)];
}
// Bytes that `count` elements take; packed types round up to a whole byte. Counts that only an
// expanded view can have stop at the largest number.
constexpr int64_t storage_bytes(DType dtype, int64_t count) {
  int64_t bits = 0;
  if (__builtin_mul_overflow(count, bit_size(dtype), &bits) || bits > INT64_MAX - 7)
    return INT64_MAX;
  return (bits + 7) / 8;
}

constexpr ComputeType compute_type(DType dtype) {
  if (dtype == DType::f64) return ComputeType::f64;
  if (dtype == DType::u64) return ComputeType::u64;
  return is_float(dtype) ? ComputeType::f32 : ComputeType::i64;
}

constexpr bool is_integer(ComputeType type) { return type >= ComputeType::i64; }
constexpr int64_t compute_bytes(ComputeType type) { return type == ComputeType::f32 ? 4 : 8; }
// The dtype whose elements are values of a compute type as they lie, without conversion.
constexpr DType natural_dtype(ComputeType type) {
  constexpr DType dtypes[] = {DType::f32, DType::f64, DType::i64, DType::u64};
  return dtypes[static_cast<size_t>(type)];
}
constexpr bool is_natural(DType dtype) { return dtype == natural_dtype(compute_type(dtype)); }
// What sums and products of a dtype's elements are kept in: floats in their own dtype, integers in 64 bits.
constexpr DType sum_dtype(DType dtype) {
  return is_float(dtype) ? dtype : dtype == DType::u64 ? DType::u64 : DType::i64;
}

// Limits of a float dtype: largest finite value, smallest normal one, spacing at 1.
struct FloatLimits {
  double max, tiny, eps;
};
FloatLimits finfo(DType dtype);
// Limits of an integer dtype.
struct IntLimits {
  int64_t min;
  uint64_t max;
};
IntLimits iinfo(DType dtype);

// PyTorch's lattice for two tensors that both have dimensions. u64 beside a signed integer is an Error, as it is in
// PyTorch: no integer dtype holds both.
DType promote(DType a, DType b, std::string_view op = "promote");

template <typename T>
concept StorageType = std::same_as<T, double> || std::same_as<T, float> || std::same_as<T, f16> ||
    std::same_as<T, bf16> || std::same_as<T, f8e4m3> || std::same_as<T, f8e5m2> || std::integral<T>;

template <typename T>
consteval DType dtype_of() {
  using enum DType;
  if constexpr (std::same_as<T, double>)
    return f64;
  else if constexpr (std::same_as<T, float>)
    return f32;
  else if constexpr (std::same_as<T, brrr::f16>)
    return f16;
  else if constexpr (std::same_as<T, brrr::bf16>)
    return bf16;
  else if constexpr (std::same_as<T, brrr::f8e4m3>)
    return f8e4m3;
  else if constexpr (std::same_as<T, brrr::f8e5m2>)
    return f8e5m2;
  else if constexpr (std::same_as<T, bool>)
    return boolean;
  else if constexpr (std::signed_integral<T>) {
    return sizeof(T) == 8 ? i64 : sizeof(T) == 4 ? i32 : sizeof(T) == 2 ? i16 : i8;
  } else {
    static_assert(std::unsigned_integral<T> && sizeof(T) <= 8, "no dtype for this C++ type");
    return sizeof(T) == 8 ? u64 : sizeof(T) == 4 ? u32 : sizeof(T) == 2 ? u16 : u8;
  }
}

// Calls visitor.template operator()<T>() with the C++ type that stores `dtype`.
template <typename Visitor>
decltype(auto) visit_dtype(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::f64: return visitor.template operator()<double>();
    case DType::f32: return visitor.template operator()<float>();
    case DType::f16: return visitor.template operator()<f16>();
    case DType::bf16: return visitor.template operator()<bf16>();
    case DType::f8e4m3: return visitor.template operator()<f8e4m3>();
    case DType::f8e5m2: return visitor.template operator()<f8e5m2>();
    case DType::i64: return visitor.template operator()<int64_t>();
    case DType::i32: return visitor.template operator()<int32_t>();
    case DType::i16: return visitor.template operator()<int16_t>();
    case DType::i8: return visitor.template operator()<int8_t>();
    case DType::u64: return visitor.template operator()<uint64_t>();
    case DType::u32: return visitor.template operator()<uint32_t>();
    case DType::u16: return visitor.template operator()<uint16_t>();
    case DType::u8: return visitor.template operator()<uint8_t>();
    case DType::boolean: return visitor.template operator()<bool>();
    case DType::i4:
    case DType::u4: break;
  }
  fail(to_text(dtype),
       " packs two values a byte and is for storage only; cast it to another dtype first");
}

// The same for the four types that kernels compute in.
template <typename Visitor>
decltype(auto) visit_compute(ComputeType type, Visitor&& visitor) {
  if (type == ComputeType::f32) return visitor.template operator()<float>();
  if (type == ComputeType::f64) return visitor.template operator()<double>();
  if (type == ComputeType::u64) return visitor.template operator()<uint64_t>();
  return visitor.template operator()<int64_t>();
}

// For sums and products, which wrap: modulo 2^64, u64 has the bits of i64 and shares its code.
template <typename Visitor>
decltype(auto) visit_wrapping(ComputeType type, Visitor&& visitor) {
  if (type == ComputeType::f32) return visitor.template operator()<float>();
  if (type == ComputeType::f64) return visitor.template operator()<double>();
  return visitor.template operator()<int64_t>();
}

}  // namespace brrr
