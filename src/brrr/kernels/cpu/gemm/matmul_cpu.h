// CPU kernel of matmul, made of the products of kernels/cpu/gemm/gemm_cpu.h.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

void matmul_cpu(const KernelCall& call);  // a third operand is a bias over the columns
void linear_cpu(const KernelCall& call);
int64_t matmul_workspace(const KernelCall& call);

}  // namespace brrr::kernels
