// How devices come into the table of hardware.h: those that brrr knows by itself, and those of users.
#pragma once

#include "brrr/hardware/hardware.h"

namespace brrr::hardware {

std::vector<GpuSpec> builtin_gpus();  // those of hardware/hardware.toml, in its order
void register_gpu(GpuSpec gpu);       // throws Error on a taken name or a contradiction

}  // namespace brrr::hardware
