// The driver of every elementwise op on the CPU: loops, broadcasting, dtypes and threads live here, so
// that an op is only its tile function.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

// Elements that one thread takes at a time. Fixed, so that results do not depend on thread counts.
inline constexpr int64_t kPieceElements = 16 * kTileElements;

// The kernel of every op that has `tiles`.
void run_elementwise(const KernelCall& call);

// Copies with conversion, straight from the input's dtype to the output's: one rounding.
void run_copy(const KernelCall& call);

}  // namespace brrr::kernels
