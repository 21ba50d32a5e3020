// What vendors promise: dense FLOP/s by device and dtype, memory size and bandwidth, each number
// with where it comes from. For planning and MFU; what a machine really does is in measure.h.
//
// Dense means without 2:4 structured sparsity, which doubles the headline of most data sheets.
// A device or dtype that is not listed is an Error: a guess here makes every MFU after it wrong.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "brrr/base/units.h"
#include "brrr/tensor/dtype.h"

namespace brrr {

struct PromisedRate {
  std::string_view device;  // "H100"
  DType dtype = DType::f32;
  FlopsPerSecond dense;
  std::string_view source;
};

struct DeviceMemory {
  std::string_view device;
  Bytes size;  // the vendor's decimal figure; a driver reports a little less as usable
  BytesPerSecond bandwidth;
  std::string_view source;
};

std::span<const PromisedRate> promised_rates();
std::span<const DeviceMemory> device_memories();

// The row of a device; throws Error that lists what is known.
const PromisedRate& promised_rate(std::string_view device, DType dtype);
const DeviceMemory& device_memory(std::string_view device);

// The name in these tables of what a driver reports: "NVIDIA H100 80GB HBM3" is the "H100". Board
// variants differ in speed ("H100 PCIe"), so only whole known names are accepted.
std::string_view device_from_driver_name(std::string_view reported);

// FLOPs per byte at which arithmetic and memory take the same time: below it memory is the bound.
double ridge_flops_per_byte(std::string_view device, DType dtype);

}  // namespace brrr
