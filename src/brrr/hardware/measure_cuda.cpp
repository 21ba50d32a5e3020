#include "brrr/hardware/measure_cuda.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "brrr/device/cuda/runtime.h"
#include "brrr/hardware/hardware.h"
#include "brrr/hardware/measure.h"
#include "brrr/kernels/cuda/gemm/gemm_cuda.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"

namespace brrr::hardware {
namespace {

constexpr int64_t kArrayBytes = int64_t{1} << 31;  // many times the caches of any GPU

Tensor random_factor(const Shape& shape, DType dtype, uint32_t draw, Device device) {
  const RandomKey key{.seed = 1, .stream = 0, .draw = draw};
  return cast(uniform(shape, key, {-1, 1}, {.dtype = DType::f32, .device = device}), dtype);
}

// y = x w^T: both factors run along k, which 8-bit products need.
kernels::Gemm product_of(const Tensor& x, const Tensor& w, const Tensor& y, bool tf32) {
  return {.m = x.dim(0),
          .n = w.dim(0),
          .k = x.dim(1),
          .a = {x.storage().data(), x.dtype(), x.dim(1), 1, 0},
          .b = {w.storage().data(), w.dtype(), 1, w.dim(1), 0},
          .c = {y.storage().data(), y.dtype(), y.dim(1), 1, 0},
          .tf32 = tf32};
}

// Seconds of one call of `enqueue`, by events around several.
Seconds time_on_stream(cuda::Stream stream, const std::function<void()>& enqueue, int calls) {
  enqueue();
  cuda::Event begin, end;
  begin.record(stream);
  for (int i = 0; i < calls; ++i) enqueue();
  end.record(stream);
  end.wait();
  return Seconds(cuda::seconds_between(begin, end) / calls);
}

}  // namespace

std::string_view product_name(ProductKind kind) {
  constexpr std::string_view names[] = {"f32", "tf32", "f16", "bf16", "f8e4m3"};
  return names[static_cast<size_t>(kind)];
}

DType factor_dtype(ProductKind kind) {
  constexpr DType dtypes[] = {DType::f32, DType::f32, DType::f16, DType::bf16, DType::f8e4m3};
  return dtypes[static_cast<size_t>(kind)];
}

std::optional<FlopsPerSecond> promised_product_rate(std::string_view device, ProductKind kind) {
  constexpr Arithmetic arithmetics[] = {Arithmetic::fp32, Arithmetic::tf32, Arithmetic::fp16,
                                        Arithmetic::bf16, Arithmetic::fp8};
  if (device.empty()) return std::nullopt;
  const PeakRate* peak = find_gpu(device).find(arithmetics[static_cast<size_t>(kind)]);
  return peak ? std::optional(peak->dense) : std::nullopt;
}

std::optional<Seconds> time_product(int device, ProductKind kind, const ProductSize& size,
                                    int trials) {
  const Device gpu = Device::cuda(device);
  const cuda::Stream stream = cuda::stream(device);
  const DType dtype = factor_dtype(kind);
  const Tensor x = random_factor({size.m, size.k}, dtype, 1, gpu),
               w = random_factor({size.n, size.k}, dtype, 2, gpu),
               y = empty({size.m, size.n}, kind == ProductKind::f8 ? DType::bf16 : dtype, gpu);
  const kernels::Gemm gemm = product_of(x, w, y, kind == ProductKind::tf32);
  if (!kernels::is_gemm_supported(gemm)) return std::nullopt;
  const Tensor workspace = empty({kernels::kGemmWorkspaceBytes}, DType::u8, gpu);
  const std::span<std::byte> scratch(workspace.storage().data(),
                                     static_cast<size_t>(kernels::kGemmWorkspaceBytes));
  try {
    kernels::run_gemm_cuda(gemm, stream, scratch);  // chooses the algorithm
  } catch (const Error&) {
    return std::nullopt;  // this GPU has no such tensor cores
  }
  return time_median(
      [&] {
        kernels::run_gemm_cuda(gemm, stream, scratch);
        cuda::wait(stream);
      },
      trials);
}

GpuMemoryRates measure_gpu_memory(int device) {
  const Device gpu = Device::cuda(device);
  const cuda::Stream stream = cuda::stream(device);
  const int64_t free = cuda::memory_state(device).free;
  const int64_t bytes = std::min(kArrayBytes, free / 8 / 4096 * 4096);
  const Tensor x = random_factor({bytes / 4}, DType::f32, 3, gpu),
               y = empty({bytes / 4}, DType::f32, gpu);
  const Seconds copy = time_on_stream(
      stream,
      [&] {
        cuda::copy_on_device(y.storage().data(), x.storage().data(), static_cast<size_t>(bytes),
                             stream);
      },
      10);
  const Seconds read = time_on_stream(
      stream, [&] { sum(x); }, 10);
  return {.read = Bytes(bytes) / read, .copy = Bytes(2 * bytes) / copy};
}

TransferRates measure_transfers(int device) {
  constexpr int64_t kBytes = int64_t{256} << 20;
  const cuda::Stream stream = cuda::stream(device);
  const Tensor there = empty({kBytes}, DType::u8, Device::cuda(device));
  const cuda::PinnedBytes pinned(static_cast<size_t>(kBytes));
  std::vector<std::byte> pageable(static_cast<size_t>(kBytes), std::byte{1});
  std::memset(pinned.data(), 1, pinned.size());
  const auto rate = [&](const std::function<void()>& enqueue) {
    return Bytes(kBytes) / time_median(
                               [&] {
                                 enqueue();
                                 cuda::wait(stream);
                               },
                               3);
  };
  std::byte* const gpu = there.storage().data();
  const auto bytes = static_cast<size_t>(kBytes);
  return {
      .to_device_pinned = rate([&] { cuda::copy_to_device(gpu, pinned.data(), bytes, stream); }),
      .to_host_pinned = rate([&] { cuda::copy_to_host(pinned.data(), gpu, bytes, stream); }),
      .to_device_pageable =
          rate([&] { cuda::copy_to_device(gpu, pageable.data(), bytes, stream); }),
      .to_host_pageable = rate([&] { cuda::copy_to_host(pageable.data(), gpu, bytes, stream); })};
}

}  // namespace brrr::hardware
