// Telling the cost counters of this thread (CostCounter, graph/call.h) about work that did not come by
// way of call_op: the kernels of a compiled program.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr {

bool is_counting();
// Adds to the innermost counter, where there is one.
void count_work(const OpDef& op, const Cost& cost);

}  // namespace brrr
