// The driver of every elementwise op on a GPU. Large calls get a kernel generated for their shapes; the
// others, and all where NVRTC is missing, run one built-in kernel that asks at run time what to do.
#pragma once

#include "brrr/graph/cuda_call.h"

namespace brrr::kernels {

// Every op with an expression (OpDef::expression) runs by it, built-in kernels by its row (OpDef::function).
void run_elementwise_cuda(const CudaCall& call);

}  // namespace brrr::kernels
