// What every op must hold on a GPU, beside the cpu: values, layouts, poisoned outputs, gradients.
#pragma once

#include <cstdint>

#include "brrr/device/cuda/runtime.h"
#include "brrr/sweep/sweep.h"

namespace brrr::sweep {

std::span<const Check> cuda_checks();

// Inputs of the checks on a GPU are the samples, each float moved a little by random numbers of this seed:
// fresh ones each run. Failures name it.
void set_cuda_seed(uint64_t seed);

}  // namespace brrr::sweep
