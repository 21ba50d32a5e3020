// What layer_norm, rms_norm and their gradients share: types, and the walk over the rows.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

enum class Norm : uint8_t { layer, rms };

// Statistics and intermediate values of low-precision rows are f32.
inline DType wide_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }
// Weights have the dtype of the rows, or stay f32 beside rows of fewer bits: so do their gradients.
inline bool is_norm_weight(DType weight, DType rows) {
  return weight == rows || weight == wide_dtype(rows);
}
// One number a row of x.
inline TensorType row_statistic_type(Shape x, DType dtype) {
  x.pop_back();
  return {x, wide_dtype(dtype)};
}

// layer: x, weight, bias -> y, mean, inverse_std      rms: x, weight -> y, inverse_rms
void run_norm(const KernelCall& call, Norm norm);

// layer: x, weight, mean, inverse_std, dy -> dx, dweight, dbias
// rms:   x, weight, inverse_rms, dy -> dx, dweight
//
// dweight and dbias are sums over rows. Rows are cut into blocks by shape alone; each block adds up
// its rows in order in the workspace, and the blocks are added in order: the same bits for any
// number of threads.
void run_norm_backward(const KernelCall& call, Norm norm);
int64_t norm_backward_workspace(const KernelCall& call);

}  // namespace brrr::kernels
