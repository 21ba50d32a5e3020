// The kernel of fold in views.cpp.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

void fold_cpu(const KernelCall& call);
int64_t fold_workspace(const KernelCall& call);

}  // namespace brrr::kernels
