// The inner loops that measure.cpp times, compiled for each CPU target.
#pragma once

#include <cstdint>

#include "brrr/hardware/measure.h"

namespace brrr::hardware {

// Twelve independent chains of multiply-adds over full vectors, `steps` long. Returns their sum, so
// that the work has a use. FLOPs: chain_flops_per_step() for each step.
float run_f32_chains(int64_t steps);
double run_f64_chains(int64_t steps);
int64_t f32_chain_flops_per_step();
int64_t f64_chain_flops_per_step();

// `count` is a multiple of 128; addresses are 64-byte aligned.
float sum_floats(const float* x, int64_t count);
void fill_floats(float* y, float value, int64_t count, Stores stores);
void copy_floats(float* y, const float* x, int64_t count, Stores stores);

}  // namespace brrr::hardware
