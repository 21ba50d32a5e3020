// CPU kernel of matmul: OpenBLAS, single-threaded, on slabs cut by shape alone under brrr's threads.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr {

void matmul_cpu(const KernelCall& call);
int64_t matmul_workspace(const KernelCall& call);

}  // namespace brrr
