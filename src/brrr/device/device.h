// Where data lives. A device allocates and frees bytes and counts every one of them in its ledger.
//   cpu    host memory
//   null   no memory at all: sizes are counted, nothing is stored. A 70B model fits on a laptop.
//   cuda   an NVIDIA GPU
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace brrr {

enum class DeviceKind : uint8_t { cpu, null, cuda };

inline constexpr int kMaxCudaDevices = 16;

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  uint8_t index = 0;

  static constexpr Device cpu() { return {}; }
  static constexpr Device null() { return {.kind = DeviceKind::null}; }
  static Device cuda(int index);  // 0 to kMaxCudaDevices - 1

  // False on the null device: tensors there have a shape and a price, and no elements.
  constexpr bool has_data() const { return kind != DeviceKind::null; }
  // Elements are in memory of its own, which the host reads by copies.
  constexpr bool is_accelerator() const { return kind == DeviceKind::cuda; }
  constexpr bool operator==(const Device&) const = default;
};

std::string to_text(Device device);          // "cpu", "null", "cuda:0"
Device parse_device(std::string_view text);  // the inverse; throws Error on anything else

// Throws Error when the device is absent, or cannot hold the bytes. Alignment is 64 bytes.
// The null device returns nullptr.
void* allocate(Device device, size_t bytes);
void release(Device device, void* memory) noexcept;

}  // namespace brrr
