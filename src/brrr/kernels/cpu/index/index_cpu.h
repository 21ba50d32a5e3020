// The kernels of index.cpp and index_select.cpp, and that of nll.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

void gather_cpu(const KernelCall& call);
void scatter_add_cpu(const KernelCall& call);
void embedding_cpu(const KernelCall& call);
void embedding_grad_cpu(const KernelCall& call);
void index_select_cpu(const KernelCall& call);
void one_hot_cpu(const KernelCall& call);
void nll_cpu(const KernelCall& call);

int64_t scatter_add_workspace(const KernelCall& call);
int64_t embedding_grad_workspace(const KernelCall& call);

}  // namespace brrr::kernels
