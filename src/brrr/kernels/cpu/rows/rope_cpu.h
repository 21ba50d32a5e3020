// The CPU kernels of rope.
#pragma once

#include <vector>

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

// base^(-i / pairs) for every pair i: what a position is multiplied by.
std::vector<double> rope_frequencies(double base, int64_t pairs);

void rope_table_cpu(const KernelCall& call);
void rope_cpu(const KernelCall& call);

}  // namespace brrr::kernels
