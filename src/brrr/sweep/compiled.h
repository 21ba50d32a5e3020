// Compiled programs around an op give the bits that eager calls give, and so do their gradients.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::sweep {

void check_compiled(const OpDef& op);

}  // namespace brrr::sweep
