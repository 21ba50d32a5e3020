// The kernel of sort.cpp.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

// The first elements in order along "axis", as many as the outputs hold: all of them, or the top k.
void sort_cpu(const KernelCall& call);

}  // namespace brrr::kernels
