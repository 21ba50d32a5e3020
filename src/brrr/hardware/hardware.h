// What vendors promise: dense FLOP/s by device and arithmetic, memory size and bandwidth, links, each number
// with where it comes from. For planning and MFU; what a machine really does is in measure.h.
//
// Dense means without 2:4 structured sparsity, which doubles the headline of most data sheets. A device or
// arithmetic that is not listed is an Error: a guess here makes every MFU after it wrong.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/base/units.h"
#include "brrr/tensor/dtype.h"

namespace brrr::hardware {

// What a unit multiplies; tf32 and fp4 are no element types of ours.
enum class Arithmetic : uint8_t { fp32, tf32, fp16, bf16, fp8, fp4, int8 };
inline constexpr int kArithmetics = 7;
std::string_view to_text(Arithmetic arithmetic);
// "bf16", "fp32" or "f32", ...; throws Error with the list on any other name.
Arithmetic parse_arithmetic(std::string_view name);
Arithmetic arithmetic_of(DType dtype);

// What the vendor's headline counts: halved here where zeros are in it.
enum class Headline : uint8_t { dense, sparse_halved };
std::string_view to_text(Headline headline);

struct PeakRate {
  Arithmetic arithmetic = Arithmetic::fp32;
  FlopsPerSecond dense;
  std::string_view accumulate;  // the type of the sums: "fp32", "int32"
  Headline headline = Headline::dense;
  std::string source;
};

// A peak from first principles: clock x units x fused multiply-adds of one unit a cycle x 2.
struct ClockPeak {
  Arithmetic arithmetic = Arithmetic::bf16;
  double clock_hertz = 0;
  int64_t units = 0;          // tensor cores, matrix units or multiprocessors
  int64_t fma_per_cycle = 0;  // of one unit
  FlopsPerSecond rate() const {
    return FlopsPerSecond(2 * clock_hertz * static_cast<double>(units * fma_per_cycle));
  }
};

struct Link {
  std::string name;          // "NVLink4"
  BytesPerSecond both_ways;  // the vendor's sum of both directions
  BytesPerSecond one_way() const { return both_ways / 2; }
};

struct ComputeCapability {
  int major = 0, minor = 0;  // 9.0: code for sm_90
};

struct GpuSpec {
  std::string name;   // "h100-sxm": what commands take, kept stable
  std::string title;  // "NVIDIA H100 SXM"
  std::vector<std::string> aliases = {};
  std::vector<std::string> driver_names = {};  // whole names that drivers report
  std::vector<PeakRate> peaks = {};
  Bytes memory = {};  // the vendor's decimal figure; a driver reports a little less as usable
  BytesPerSecond bandwidth = {};
  std::string memory_source = {};
  Link link = {};
  double watts = 0;         // of the board at its limit; 0: not found
  int multiprocessors = 0;  // 0: not found
  Bytes l2 = {};            // of the chip; 0: not found
  Bytes l1 = {};            // of a multiprocessor, shared memory included; 0: not found
  std::optional<ComputeCapability> compute_capability = {};  // of NVIDIA's
  Bytes shared_per_multiprocessor = {};                      // 0: not found
  Bytes shared_per_block = {};  // the most that a block may ask for (opt-in); 0: not found
  std::optional<ClockPeak> clock = {};
  FlopsPerSecond best_matmul = {};  // the best bf16 product that somebody measured; 0: not found
  std::string best_matmul_source = {};
  bool is_estimated = false;  // the vendor publishes no FLOP/s

  const PeakRate* find(Arithmetic arithmetic) const;
  // Throws Error with what the device has.
  const PeakRate& peak(Arithmetic arithmetic) const;
};

std::span<const GpuSpec> known_gpus();
// By name, alias or title, capitals or not. Throws Error with near matches and the whole list.
const GpuSpec& find_gpu(std::string_view name);

// Devices of a user: [gpu.NAME] with bf16_tflops = ..., memory_gb, bandwidth_gb_s, headline = "dense" and a
// source (docs/napkin.md has a whole entry). They join those of the table. Throws Error, naming `origin`, on
// an entry that lacks something, is taken, or whose peak is not what its clock and units give.
void add_gpus_from_toml(std::string_view text, std::string_view origin);

// Throws Error where the numbers of an entry contradict each other: a peak that differs from clock x units x
// multiply-adds by more than 3 %, twice it above all; a matrix rate below fp32; fp8 that is not above bf16.
void require_consistent(const GpuSpec& gpu);

// ---- short forms by element type ----

struct PromisedRate {
  std::string_view device;  // "h100-sxm"
  DType dtype = DType::f32;
  FlopsPerSecond dense;
  std::string_view source;
};
struct DeviceMemory {
  std::string_view device;
  Bytes size;
  BytesPerSecond bandwidth;
  std::string_view source;
};

PromisedRate promised_rate(std::string_view device, DType dtype);
DeviceMemory device_memory(std::string_view device);

// The name in the table of what a driver reports: "NVIDIA H100 80GB HBM3" is the "h100-sxm". Board variants
// differ in speed, so only whole known names are accepted.
std::string_view device_from_driver_name(std::string_view reported);
const GpuSpec* find_by_driver_name(std::string_view reported);  // nullptr where the table lacks it

// FLOPs per byte at which arithmetic and memory take the same time: below it memory is the bound.
double ridge_flops_per_byte(std::string_view device, DType dtype);

}  // namespace brrr::hardware
