// The kernel of pool.cpp.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

void max_pool2d_cpu(const KernelCall& call);

}  // namespace brrr::kernels
