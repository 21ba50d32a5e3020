// Gradients: the rule agrees with central differences in f64, and so does the rule's own gradient.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::sweep {

void check_gradients(const OpDef& op);
void check_second_gradients(const OpDef& op);

}  // namespace brrr::sweep
