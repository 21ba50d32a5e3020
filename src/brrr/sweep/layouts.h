// The same values lying otherwise in memory, on the device where they are.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::sweep {

Tensor spread_out(const Tensor& x);          // gaps between them, starting at an odd element
Tensor reversed_in_memory(const Tensor& x);  // the axes in reverse order
Tensor unaligned(const Tensor& x);           // contiguous, but not at a multiple of the vector size

// Views over elements that lie in order refuse other strides by design; their own tests say so.
bool refuses_strides(const OpDef& op);

}  // namespace brrr::sweep
