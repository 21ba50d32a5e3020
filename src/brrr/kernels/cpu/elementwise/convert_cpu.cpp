// Compiled once for each CPU target by Highway's foreach_target; plain loops that g++ vectorises.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/kernels/cpu/elementwise/convert_cpu.cpp"
#include "brrr/kernels/cpu/elementwise/convert_cpu.h"

#include "brrr/tensor/element.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE {

using LoadFn = void (*)(const std::byte* base, int64_t first, int64_t stride, int64_t count,
                        void* out);
using StoreFn = void (*)(const void* values, std::byte* base, int64_t first, int64_t stride,
                         int64_t count);

template <typename From, typename To>
void load_loop(const std::byte* base, int64_t first, int64_t stride, int64_t count, void* out) {
  const From* HWY_RESTRICT from = reinterpret_cast<const From*>(base) + first;
  To* HWY_RESTRICT to = static_cast<To*>(out);
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = convert_element<To>(from[i]);
  } else if (stride == 0) {  // broadcast
    const To value = convert_element<To>(from[0]);
    for (int64_t i = 0; i < count; ++i) to[i] = value;
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = convert_element<To>(from[i * stride]);
  }
}

template <typename From, typename To>
void store_loop(const void* values, std::byte* base, int64_t first, int64_t stride, int64_t count) {
  const From* HWY_RESTRICT from = static_cast<const From*>(values);
  To* HWY_RESTRICT to = reinterpret_cast<To*>(base) + first;
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = convert_element<To>(from[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * stride] = convert_element<To>(from[i]);
  }
}

LoadFn find_load(DType dtype, ComputeType type) {
  return visit_dtype(dtype, [type]<typename From>() -> LoadFn {
    return visit_compute(type, []<typename To>() -> LoadFn { return &load_loop<From, To>; });
  });
}

StoreFn find_store(ComputeType type, DType dtype) {
  return visit_dtype(dtype, [type]<typename To>() -> StoreFn {
    return visit_compute(type, []<typename From>() -> StoreFn { return &store_loop<From, To>; });
  });
}

}  // namespace brrr::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr::kernels {
namespace {

HWY_EXPORT(find_load);
HWY_EXPORT(find_store);

// Packed dtypes go element by element: they are read once, when weights are unpacked.
int64_t load_nibble(DType dtype, const std::byte* base, int64_t element) {
  const int nibble = (static_cast<int>(base[element >> 1]) >> ((element & 1) * 4)) & 15;
  return dtype == DType::i4 && nibble >= 8 ? nibble - 16 : nibble;
}

void store_nibble(std::byte* base, int64_t element, int64_t value) {
  const int shift = static_cast<int>(element & 1) * 4;
  std::byte& pair = base[element >> 1];
  pair = (pair & static_cast<std::byte>(0xf0 >> shift)) |
         static_cast<std::byte>((value & 15) << shift);
}

template <typename T>
int64_t to_nibble(DType dtype, T value) {
  if constexpr (std::integral<T>) return static_cast<int64_t>(value);  // integers wrap
  const IntLimits range = iinfo(dtype);
  return std::clamp(convert_element<int64_t>(value), range.min, static_cast<int64_t>(range.max));
}

}  // namespace

void load_elements(DType dtype, const std::byte* base, int64_t first, int64_t stride, int64_t count,
                   ComputeType type, void* out) {
  if (!is_packed(dtype)) {
    HWY_DYNAMIC_DISPATCH(find_load)(dtype, type)(base, first, stride, count, out);
    return;
  }
  visit_compute(type, [&]<typename T>() {
    for (int64_t i = 0; i < count; ++i) {
      static_cast<T*>(out)[i] = static_cast<T>(load_nibble(dtype, base, first + i * stride));
    }
  });
}

void store_elements(ComputeType type, const void* values, DType dtype, std::byte* base,
                    int64_t first, int64_t stride, int64_t count) {
  if (!is_packed(dtype)) {
    HWY_DYNAMIC_DISPATCH(find_store)(type, dtype)(values, base, first, stride, count);
    return;
  }
  visit_compute(type, [&]<typename T>() {
    for (int64_t i = 0; i < count; ++i) {
      store_nibble(base, first + i * stride, to_nibble(dtype, static_cast<const T*>(values)[i]));
    }
  });
}

}  // namespace brrr::kernels
#endif
