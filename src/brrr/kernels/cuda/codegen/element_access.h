// How generated kernels move elements: in packs of up to 16 bytes an access, converted to the type that is
// computed in and back. Included by generated text, and by kernels that nvcc compiles.
#pragma once

#include "brrr/base/float_formats.h"
#include "brrr/tensor/element.h"

namespace brrr::device {

// kCount elements that lie behind one another, aligned to their size or to 16 bytes.
template <typename T, int kCount>
struct alignas(kCount * sizeof(T) < 16 ? kCount * sizeof(T) : 16) Pack {
  T at[kCount];
};

template <int kBytes>
struct Words;
template <>
struct Words<1> {
  using type = unsigned char;
};
template <>
struct Words<2> {
  using type = unsigned short;
};
template <>
struct Words<4> {
  using type = unsigned;
};
template <>
struct Words<8> {
  using type = uint2;
};
template <>
struct Words<16> {
  using type = uint4;
};

template <int kCount, typename T>
__device__ __forceinline__ Pack<T, kCount> load_pack(const T* from) {
  constexpr int kBytes = kCount * sizeof(T), kAccess = kBytes < 16 ? kBytes : 16;
  using Word = typename Words<kAccess>::type;
  Pack<T, kCount> pack;
#pragma unroll
  for (int i = 0; i < kBytes / kAccess; ++i)
    reinterpret_cast<Word*>(&pack)[i] = reinterpret_cast<const Word*>(from)[i];
  return pack;
}

template <typename T, int kCount>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, kCount>& pack) {
  constexpr int kBytes = kCount * sizeof(T), kAccess = kBytes < 16 ? kBytes : 16;
  using Word = typename Words<kAccess>::type;
#pragma unroll
  for (int i = 0; i < kBytes / kAccess; ++i)
    reinterpret_cast<Word*>(to)[i] = reinterpret_cast<const Word*>(&pack)[i];
}

// As convert_element, with the GPU's instructions where there are some. They give the same bits but for the
// payloads of NaN.
template <typename To, typename From>
__device__ __forceinline__ To convert(From value) {
  if constexpr (std::is_same_v<To, bf16> && std::is_same_v<From, float>) {
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bf16::from_bits(bits);
  } else if constexpr (std::is_same_v<To, f16> && std::is_same_v<From, float>) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return f16::from_bits(bits);
  } else if constexpr (std::is_same_v<From, f16> && std::is_same_v<To, float>) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
    return wide;
  } else if constexpr (std::is_same_v<From, bf16> && std::is_same_v<To, float>) {
    return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
  } else {
    return convert_element<To>(value);
  }
}

// A value as another type holds it: rounded, saturated, converted. A bf16 is the upper half of its float: the
// conversion of a pair, with zero below it, has the float at once, and an eighth of the cost of converting one.
template <typename Held, typename To, typename From>
__device__ __forceinline__ To through(From value) {
  if constexpr (std::is_same_v<Held, bf16> && std::is_same_v<From, float> &&
                std::is_same_v<To, float>) {
    unsigned bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(value), "f"(0.0f));
    return __uint_as_float(bits);
  } else {
    return convert<To>(convert<Held>(value));
  }
}

}  // namespace brrr::device
