// Generated kernels that are ready to launch: compiled for the GPU at hand and loaded, once for each text.
#pragma once

#include "brrr/device/cuda/nvrtc.h"
#include "brrr/device/cuda/runtime.h"

namespace brrr::cuda {

// The architecture to compile for: "sm_90a" on a GPU of compute capability 9.0, "sm_80" on one of 8.0.
std::string architecture_of(int device);

// The entry point `name` of a source, on this device. The reference stays valid.
const Kernel& generated_kernel(const SourceText& source, const std::string& name, int device);

}  // namespace brrr::cuda
