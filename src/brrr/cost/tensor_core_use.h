// Whether the product or attention of a kernel runs on tensor cores.
#pragma once

#include <optional>

#include "brrr/compiler/lower/kernel_list.h"
#include "brrr/kernels/calls/tensor_cores.h"

namespace brrr {

// Nothing for kernels that multiply no matrices.
std::optional<TensorCoreUse> tensor_cores_of(const Kernel& kernel, GpuGeneration gpu);

}  // namespace brrr
