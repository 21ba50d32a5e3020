// Products with what a matrix library does to their result on its way to memory. Nobody calls these ops: the
// compiler puts them in place of a product and its neighbours (compiler/fuse/epilogues.h). Sums, bias and
// functions are computed in f32 and rounded once.
//
//   matmul_gelu           z = a b (+ bias): gelu_tanh(z), and z where `keep` says that others read it
//   matmul_gelu_backward  dz = (a b) gelu_tanh'(z), and where `sums` says so its column sums
//   matmul_sums           a b (+ c), and the sums of a over k: for dW = dY^T X the bias gradient
//   matmul_add            a b (+ bias) + c
//
// a is [..., k], its leading axes are rows; b is [k, n].
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr {

// What all of them ask of a product, as cuBLASLt does of epilogues.
inline constexpr DTypeSet kEpilogueDTypes =
    dtype_set(DType::f32) | dtype_set(DType::f16) | dtype_set(DType::bf16);
inline constexpr int64_t kEpilogueAlignment =
    8;  // n, which is how far rows of the result are apart

}  // namespace brrr
