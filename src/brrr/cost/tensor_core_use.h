// Whether the product or attention of a kernel runs on tensor cores.
#pragma once

#include <optional>

#include "brrr/compiler/lower/kernel_list.h"
#include "brrr/kernels/calls/tensor_cores.h"

namespace brrr::cost {

// Nothing for kernels that multiply no matrices.
std::optional<kernels::TensorCoreUse> tensor_cores_of(const compiler::Kernel& kernel,
                                                      kernels::GpuGeneration gpu);

}  // namespace brrr::cost
