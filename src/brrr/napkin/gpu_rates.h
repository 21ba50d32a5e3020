// Rates of a device of the hardware table for pricing a whole program: peaks, and the shares of them that
// products, attention and copies were seen to reach. Uncalibrated: a prediction from these says so.
#pragma once

#include "brrr/account/hardware.h"
#include "brrr/account/rates.h"
#include "brrr/compiler/precision.h"

namespace brrr {

// The arithmetic that products of a precision run in.
Arithmetic arithmetic_of(Precision precision);

// The shares behind gpu_rates, for people: one sentence each.
std::vector<std::string> gpu_rate_assumptions(const GpuSpec& gpu, Precision precision);

Rates gpu_rates(const GpuSpec& gpu, Precision precision);

// How far predictions from gpu_rates were from published runs of tuned systems (napkin check): the band that
// is stated with them.
inline constexpr double kUncalibratedBand = 0.15;

}  // namespace brrr
