// The kernel of draw_tokens.cpp.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr {

void draw_tokens_cuda(const CudaCall& call);

}  // namespace brrr
