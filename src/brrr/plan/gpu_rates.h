// Rates of a device of the hardware table for pricing a whole program: peaks, and the shares of them that
// products, attention and copies were seen to reach. Uncalibrated: a prediction from these says so.
#pragma once

#include "brrr/compiler/precision/precision.h"
#include "brrr/hardware/hardware.h"
#include "brrr/hardware/rates.h"

namespace brrr::plan {

// The arithmetic that products of a precision run in.
hardware::Arithmetic arithmetic_of(compiler::Precision precision);

// Which kernels a system runs its attention with; an option of the software, not of the device.
enum class AttentionMethod : uint8_t {
  current,  // cuDNN on Hopper, FlashAttention-2 on Ampere
  flash2,   // FlashAttention-2 everywhere: on Hopper it does not use the asynchronous matrix units
  unfused,  // of before FlashAttention: scores are written to memory and read again
  triton    // FlashAttention of 2022 in Triton: slower than FlashAttention-2 on either
};
std::string_view to_text(AttentionMethod kernel);
// "current", "flash2", "unfused" or "triton"; throws Error with the list on any other name.
AttentionMethod parse_attention_kernel(std::string_view name);

// The shares behind gpu_rates, for people: one sentence each.
std::vector<std::string> gpu_rate_assumptions(const hardware::GpuSpec& gpu,
                                              compiler::Precision precision,
                                              AttentionMethod attention);

// Bytes a second that copies reach.
double copy_rate(const hardware::GpuSpec& gpu);

hardware::Rates gpu_rates(const hardware::GpuSpec& gpu, compiler::Precision precision,
                          AttentionMethod attention = AttentionMethod::current);

// For programs of brrr itself on a device that was not calibrated: products, and attention by its own kernels, in
// every arithmetic that the table has for the device.
hardware::Rates own_gpu_rates(const hardware::GpuSpec& gpu);

// How far predictions from gpu_rates were from published runs of tuned systems (napkin check): the band that
// is stated with them.
inline constexpr double kUncalibratedBand = 0.15;

}  // namespace brrr::plan
