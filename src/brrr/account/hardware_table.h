// The table behind hardware.h: the devices that brrr knows by itself, and the door for others.
#pragma once

#include "brrr/account/hardware.h"

namespace brrr {

std::vector<GpuSpec> builtin_gpus();
void register_gpu(GpuSpec gpu);  // throws Error on a taken name or a contradiction

}  // namespace brrr
