// The CPU kernels of attention and of its gradient.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

int64_t attention_workspace(const KernelCall& call);
void attention_cpu(const KernelCall& call);

int64_t attention_backward_workspace(const KernelCall& call);
void attention_backward_cpu(const KernelCall& call);

}  // namespace brrr::kernels
