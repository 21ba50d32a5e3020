// What a legal memory plan is: the last thing that could go wrong before kernels run.
#pragma once

#include "brrr/compiler/lower/plan_memory.h"

namespace brrr::compiler {

// Throws InternalError, naming the kernel and the bytes, unless
//   - every temporary that a kernel touches has a place inside the arena, aligned
//   - two temporaries share bytes only where one is read for the last time before the other is written, or by
//     the kernel that writes it, and that kernel may do so (may_overwrite) with every operand that lies there
//   - the same holds for the bodies of repeats
void verify_plan(const KernelProgram& program);

}  // namespace brrr::compiler
