#include "brrr/account/hardware.h"

#include <algorithm>
#include <iterator>

#include "brrr/base/error.h"

namespace brrr {
namespace {

// The H100 and H200 sheets print 1,979 TFLOP/s for bf16 "with sparsity". The lecture halves that
// rounded number to 989.5; clock x units gives 1.83 GHz * 528 * 512 * 2 = 989.4.
constexpr std::string_view kHalvedSparse =
    "half of 1,979 with sparsity, the lecture's rounding of 989.4";
constexpr std::string_view kH100Single = "the lecture's 67.5; data sheet 67 (SXM, no tensor cores)";
constexpr std::string_view kHalvedSparse8 = "half of the data sheet's 3,958 with sparsity";
constexpr std::string_view kA100Sheet = "A100 data sheet, dense column";
constexpr std::string_view kA100Single = "A100 data sheet, FP32 without tensor cores";

constexpr PromisedRate kRates[] = {
    {.device = "V100",
     .dtype = DType::f32,
     .dense = FlopsPerSecond(15.7e12),
     .source = "V100 SXM2 data sheet"},
    {.device = "V100",
     .dtype = DType::f16,
     .dense = FlopsPerSecond(125e12),
     .source = "V100 SXM2 data sheet; the card has no bf16"},
    {.device = "T4",
     .dtype = DType::f32,
     .dense = FlopsPerSecond(8.1e12),
     .source = "T4 data sheet"},
    {.device = "T4",
     .dtype = DType::f16,
     .dense = FlopsPerSecond(65e12),
     .source = "T4 data sheet; the card has no bf16"},
    {.device = "A100",
     .dtype = DType::f32,
     .dense = FlopsPerSecond(19.5e12),
     .source = kA100Single},
    {.device = "A100", .dtype = DType::f16, .dense = FlopsPerSecond(312e12), .source = kA100Sheet},
    {.device = "A100", .dtype = DType::bf16, .dense = FlopsPerSecond(312e12), .source = kA100Sheet},
    {.device = "A100 40GB",
     .dtype = DType::f32,
     .dense = FlopsPerSecond(19.5e12),
     .source = kA100Single},
    {.device = "A100 40GB",
     .dtype = DType::f16,
     .dense = FlopsPerSecond(312e12),
     .source = kA100Sheet},
    {.device = "A100 40GB",
     .dtype = DType::bf16,
     .dense = FlopsPerSecond(312e12),
     .source = kA100Sheet},
    {.device = "L4",
     .dtype = DType::f32,
     .dense = FlopsPerSecond(30.3e12),
     .source = "L4 data sheet"},
    {.device = "L4",
     .dtype = DType::f16,
     .dense = FlopsPerSecond(121e12),
     .source = "half of the L4 data sheet's 242 with sparsity"},
    {.device = "L4",
     .dtype = DType::bf16,
     .dense = FlopsPerSecond(121e12),
     .source = "half of the L4 data sheet's 242 with sparsity"},
    {.device = "H100 PCIe",
     .dtype = DType::f32,
     .dense = FlopsPerSecond(51e12),
     .source = "H100 PCIe data sheet"},
    {.device = "H100 PCIe",
     .dtype = DType::f16,
     .dense = FlopsPerSecond(756e12),
     .source = "half of the H100 PCIe data sheet's 1,513 with sparsity"},
    {.device = "H100 PCIe",
     .dtype = DType::bf16,
     .dense = FlopsPerSecond(756e12),
     .source = "half of the H100 PCIe data sheet's 1,513 with sparsity"},
    {.device = "H100",
     .dtype = DType::f32,
     .dense = FlopsPerSecond(67.5e12),
     .source = kH100Single},
    {.device = "H100",
     .dtype = DType::f16,
     .dense = FlopsPerSecond(1979e12 / 2),
     .source = kHalvedSparse},
    {.device = "H100",
     .dtype = DType::bf16,
     .dense = FlopsPerSecond(1979e12 / 2),
     .source = kHalvedSparse},
    {.device = "H100",
     .dtype = DType::f8e4m3,
     .dense = FlopsPerSecond(3958e12 / 2),
     .source = kHalvedSparse8},
    {.device = "H100",
     .dtype = DType::f8e5m2,
     .dense = FlopsPerSecond(3958e12 / 2),
     .source = kHalvedSparse8},
    {.device = "H200",
     .dtype = DType::f32,
     .dense = FlopsPerSecond(67e12),
     .source = "H200 SXM data sheet (no tensor cores)"},
    {.device = "H200",
     .dtype = DType::f16,
     .dense = FlopsPerSecond(1979e12 / 2),
     .source = kHalvedSparse},
    {.device = "H200",
     .dtype = DType::bf16,
     .dense = FlopsPerSecond(1979e12 / 2),
     .source = kHalvedSparse},
    {.device = "H200",
     .dtype = DType::f8e4m3,
     .dense = FlopsPerSecond(3958e12 / 2),
     .source = kHalvedSparse8},
    {.device = "H200",
     .dtype = DType::f8e5m2,
     .dense = FlopsPerSecond(3958e12 / 2),
     .source = kHalvedSparse8},
};

constexpr DeviceMemory kMemories[] = {
    {.device = "V100",
     .size = 32_GB,
     .bandwidth = BytesPerSecond(900e9),
     .source = "V100 SXM2 32 GB data sheet"},
    {.device = "T4", .size = 16_GB, .bandwidth = BytesPerSecond(320e9), .source = "T4 data sheet"},
    {.device = "A100",
     .size = 80_GB,
     .bandwidth = BytesPerSecond(2039e9),
     .source = "A100 80 GB SXM data sheet"},
    {.device = "A100 40GB",
     .size = 40_GB,
     .bandwidth = BytesPerSecond(1555e9),
     .source = "A100 40 GB data sheet"},
    {.device = "L4", .size = 24_GB, .bandwidth = BytesPerSecond(300e9), .source = "L4 data sheet"},
    {.device = "H100 PCIe",
     .size = 80_GB,
     .bandwidth = BytesPerSecond(2000e9),
     .source = "H100 PCIe data sheet"},
    {.device = "H100",
     .size = 80_GB,
     .bandwidth = BytesPerSecond(3350e9),
     .source = "H100 SXM data sheet"},
    {.device = "H200",
     .size = 141_GB,
     .bandwidth = BytesPerSecond(4800e9),
     .source = "H200 SXM data sheet"},
};

struct DriverName {
  std::string_view reported, device;
};
constexpr DriverName kDriverNames[] = {
    {.reported = "Tesla V100-SXM2-32GB", .device = "V100"},
    {.reported = "Tesla T4", .device = "T4"},
    {.reported = "NVIDIA A100-SXM4-80GB", .device = "A100"},
    {.reported = "NVIDIA A100-SXM4-40GB", .device = "A100 40GB"},
    {.reported = "NVIDIA A100-PCIE-40GB", .device = "A100 40GB"},
    {.reported = "NVIDIA L4", .device = "L4"},
    {.reported = "NVIDIA H100 PCIe", .device = "H100 PCIe"},
    {.reported = "NVIDIA H100 80GB HBM3", .device = "H100"},
    {.reported = "NVIDIA H200", .device = "H200"},
};

bool is_known(std::string_view device) {
  return std::any_of(std::begin(kMemories), std::end(kMemories),
                     [&](const DeviceMemory& row) { return row.device == device; });
}

std::string known_devices() {
  std::string text;
  for (const DeviceMemory& row : kMemories) {
    text += join_text(text.empty() ? "" : ", ", "\"", row.device, "\"");
  }
  return text;
}

std::string known_rates(std::string_view device) {
  std::string text;
  for (const PromisedRate& row : kRates) {
    if (row.device != device) continue;
    text += join_text(text.empty() ? "" : ", ", row.dtype, " ", row.dense);
  }
  return text;
}

}  // namespace

std::span<const PromisedRate> promised_rates() { return kRates; }
std::span<const DeviceMemory> device_memories() { return kMemories; }

const PromisedRate& promised_rate(std::string_view device, DType dtype) {
  for (const PromisedRate& row : kRates) {
    if (row.device == device && row.dtype == dtype) return row;
  }
  check(is_known(device), "no promised speed of a device called \"", device, "\"; known are ",
        known_devices(), "; for others measure the peak (account/measure.h)");
  fail("no promised speed of ", dtype, " on the ", device, "; known are ", known_rates(device));
}

const DeviceMemory& device_memory(std::string_view device) {
  for (const DeviceMemory& row : kMemories) {
    if (row.device == device) return row;
  }
  fail("no memory figures of a device called \"", device, "\"; known are ", known_devices());
}

std::string_view device_from_driver_name(std::string_view reported) {
  for (const DriverName& row : kDriverNames) {
    if (row.reported == reported) return row.device;
  }
  fail("the driver calls this device \"", reported,
       "\", which is not in the hardware table; known are ", known_devices(),
       "; measure its peak instead of guessing it");
}

double ridge_flops_per_byte(std::string_view device, DType dtype) {
  return promised_rate(device, dtype).dense.value() / device_memory(device).bandwidth.value();
}

}  // namespace brrr
