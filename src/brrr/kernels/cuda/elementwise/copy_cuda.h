// CUDA kernels that put elements somewhere: copies with conversion, fills, and the ops that are nothing but
// copies into parts of a result.
#pragma once

#include "brrr/graph/cuda_call.h"

namespace brrr::kernels {

// Any strides and dtypes on both sides, straight from one dtype to the other: one rounding.
void run_copy_cuda(const CudaCall& call);
// One copy of a larger call: `from` broadcasts to the shape of `to`.
void copy_elements_cuda(const CudaCall& call, const Operand& from, const Operand& to);
void fill_elements_cuda(const CudaCall& call, const Operand& to, double value);

void full_cuda(const CudaCall& call);
void arange_cuda(const CudaCall& call);
void number_cuda(const CudaCall& call);

void concat_cuda(const CudaCall& call);
void pad_cuda(const CudaCall& call);
void flip_cuda(const CudaCall& call);
void place_slice_cuda(const CudaCall& call);
void update_view_cuda(const CudaCall& call);
void update_slice_cuda(const CudaCall& call);
void tril_cuda(const CudaCall& call);
void triu_cuda(const CudaCall& call);

}  // namespace brrr::kernels
