// CPU kernels of the reductions. Attributes: "axes" (sorted, not negative) and "keep_dims".
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

void sum_cpu(const KernelCall& call);
void mean_cpu(const KernelCall& call);
void max_cpu(const KernelCall& call);
void min_cpu(const KernelCall& call);
void argmax_cpu(const KernelCall& call);
void argmin_cpu(const KernelCall& call);
void prod_cpu(const KernelCall& call);

// Scratch for the sums of tiles, one wide value for each tile of each output.
int64_t reduce_workspace(const KernelCall& call);

}  // namespace brrr::kernels
