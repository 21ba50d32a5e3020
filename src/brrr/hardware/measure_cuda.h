// What a GPU really does: products by dtype on random data, and its memory. Random, since zeros run faster
// than real numbers do.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "brrr/base/units.h"
#include "brrr/tensor/dtype.h"

namespace brrr::hardware {

// How the factors of a product are stored and multiplied; sums are f32.
enum class ProductKind : uint8_t { f32, tf32, f16, bf16, f8 };
inline constexpr std::array kProductKinds = {ProductKind::f32, ProductKind::tf32, ProductKind::f16,
                                             ProductKind::bf16, ProductKind::f8};
std::string_view product_name(ProductKind kind);  // "f32", "tf32", ...
DType factor_dtype(ProductKind kind);

// Vendor's dense rate for a kind on a device of hardware/hardware.h; nothing where it is not listed.
std::optional<FlopsPerSecond> promised_product_rate(std::string_view device, ProductKind kind);

struct ProductSize {
  int64_t m, n, k;
  Flops flops() const { return Flops(2 * m * n * k); }
};
// The median of `trials` calls, each waited for; before them the algorithm is chosen. Nothing where the GPU
// has no such product.
std::optional<Seconds> time_product(int device, ProductKind kind, const ProductSize& size,
                                    int trials = 5);

struct GpuMemoryRates {
  BytesPerSecond read;  // summing an array
  BytesPerSecond copy;  // bytes read and bytes written together
};
GpuMemoryRates measure_gpu_memory(int device);

// Host to device and back, a large block of pinned or pageable memory.
struct TransferRates {
  BytesPerSecond to_device_pinned, to_host_pinned, to_device_pageable, to_host_pageable;
};
TransferRates measure_transfers(int device);

}  // namespace brrr::hardware
