// Every op of brrr by name; each is defined in the file of its family. all_ops.cpp lists them.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr {

// unary.cpp, unary_steps.cpp
extern const OpDef neg_op, abs_op, sign_op, square_op, relu_op, exp_op, log_op, sqrt_op, rsqrt_op,
    reciprocal_op;
extern const OpDef sin_op, cos_op, tanh_op, sigmoid_op, erf_op, gelu_op, silu_op;
extern const OpDef expm1_op, log1p_op, tan_op, leaky_relu_op, softplus_op, gelu_tanh_op, floor_op,
    ceil_op, round_op, clamp_op, isnan_op, isinf_op, isfinite_op, to_tf32_op, logical_not_op;
// binary.cpp
extern const OpDef add_op, sub_op, mul_op, div_op, pow_op, maximum_op, minimum_op;
extern const OpDef equal_op, not_equal_op, less_op, less_equal_op, greater_op, greater_equal_op,
    where_op;
extern const OpDef fmod_op, remainder_op, logical_and_op, logical_or_op, logical_xor_op;
// copy.cpp
extern const OpDef cast_op, copy_op;
// creation.cpp
extern const OpDef full_op, arange_op, number_op;
// views.cpp
extern const OpDef transpose_op, permute_op, slice_op, select_op, expand_op, squeeze_op,
    unsqueeze_op, unfold_op;
extern const OpDef view_op, place_slice_op, fold_op;
// strided.cpp
extern const OpDef strided_view_op, update_view_op;
// reduce.cpp
extern const OpDef sum_op, mean_op, max_op, min_op, var_op, argmax_op, logsumexp_op;
extern const OpDef any_op, all_op, argmin_op;
// reduce_prod.cpp, reduce_norm.cpp, reduce_cumsum.cpp
extern const OpDef prod_op, norm_op, std_op, cumsum_op;
// join.cpp, triangle.cpp
extern const OpDef concat_op, stack_op, unstack_op, tril_op, triu_op;
// pad_roll.cpp, outer.cpp
extern const OpDef pad_op, flip_op, roll_op, outer_op;
// index.cpp
extern const OpDef gather_op, scatter_add_op, embedding_op, embedding_grad_op;
// index_select.cpp
extern const OpDef index_select_op, index_add_op, one_hot_op;
// sort.cpp, update_slice.cpp, draw_tokens.cpp
extern const OpDef sort_op, topk_op, update_slice_op, draw_tokens_op;
// conv.cpp, pool.cpp
extern const OpDef conv1d_op, conv2d_op, max_pool2d_op, avg_pool2d_op;
// matmul.cpp
extern const OpDef matmul_op, linear_op;
// epilogue.cpp
extern const OpDef matmul_gelu_op, matmul_gelu_backward_op, matmul_sums_op, matmul_add_op;
// attention.cpp, attention_backward.cpp, rope.cpp
extern const OpDef attention_op, attention_backward_op, rope_op, rope_table_op;
extern const OpDef masked_attention_op, scatter_op;
// softmax.cpp, layer_norm.cpp, cross_entropy.cpp
extern const OpDef softmax_op, layer_norm_op, cross_entropy_op;
// log_softmax.cpp, rms_norm.cpp, losses.cpp, dropout.cpp
extern const OpDef log_softmax_op, rms_norm_op, mse_op, nll_op, dropout_op;
// softmax_backward.cpp, norm_backward.cpp, cross_entropy_backward.cpp, activation_backward.cpp
extern const OpDef softmax_backward_op, log_softmax_backward_op, layer_norm_backward_op,
    rms_norm_backward_op, cross_entropy_backward_op;
extern const OpDef classifier_op;
extern const OpDef gelu_backward_op, gelu_tanh_backward_op, silu_backward_op;
// random.cpp
extern const OpDef uniform_op, normal_op, truncated_normal_op, randint_op;
extern const OpDef bernoulli_op, permutation_op;

}  // namespace brrr
