// The table behind hardware.h: the devices that brrr knows by itself, and the door for others.
#pragma once

#include "brrr/account/hardware.h"

namespace brrr {

// All of them; the rows are in hardware_{ampere,hopper,other}.cpp.
std::vector<GpuSpec> builtin_gpus();
std::vector<GpuSpec> ampere_and_before();
std::vector<GpuSpec> hopper_and_after();
std::vector<GpuSpec> geforce_gpus();
std::vector<GpuSpec> amd_gpus();
std::vector<GpuSpec> tpus();
std::vector<GpuSpec> apple_gpus();
void register_gpu(GpuSpec gpu);  // throws Error on a taken name or a contradiction

// Cells of the rows: rates in TFLOP/s, bandwidth in GB/s, clocks in MHz.
namespace gpu_cells {

inline PeakRate peak(Arithmetic arithmetic, double tflops, Headline headline, std::string source) {
  return {.arithmetic = arithmetic,
          .dense = FlopsPerSecond(tflops * 1e12),
          .accumulate = arithmetic == Arithmetic::int8 ? "int32" : "fp32",
          .headline = headline,
          .source = std::move(source)};
}

inline Bytes mib(int64_t size) { return Bytes(size << 20); }
inline Bytes kib(int64_t size) { return Bytes(size << 10); }

inline ClockPeak clock(Arithmetic arithmetic, double mhz, int64_t units, int64_t fma) {
  return {.arithmetic = arithmetic, .clock_hertz = mhz * 1e6, .units = units, .fma_per_cycle = fma};
}

inline BytesPerSecond gb_s(double rate) { return BytesPerSecond(rate * 1e9); }

}  // namespace gpu_cells

}  // namespace brrr
