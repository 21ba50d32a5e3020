// Every op of brrr by name; each is defined in the file of its family. What is not here does not exist for the
// sweep, the compiler or the documentation: OP(name) is `name_op`.
#pragma once

#include "brrr/graph/op_def.h"

// clang-format off
#define BRRR_OPS(OP) \
  /* unary.cpp, unary_rounding.cpp */ \
  OP(neg) OP(abs) OP(sign) OP(square) OP(relu) OP(exp) OP(log) OP(sqrt) OP(rsqrt) \
  OP(reciprocal) OP(sin) OP(cos) OP(tanh) OP(sigmoid) OP(erf) OP(gelu) OP(silu) OP(expm1) \
  OP(log1p) OP(tan) OP(leaky_relu) OP(softplus) OP(gelu_tanh) OP(floor) OP(ceil) OP(round) \
  OP(clamp) OP(isnan) OP(isinf) OP(isfinite) OP(to_tf32) OP(logical_not) \
  /* binary.cpp */ \
  OP(add) OP(sub) OP(mul) OP(div) OP(pow) OP(maximum) OP(minimum) OP(equal) OP(not_equal) \
  OP(less) OP(less_equal) OP(greater) OP(greater_equal) OP(where) OP(fmod) OP(remainder) OP(floor_divide) \
  OP(logical_and) OP(logical_or) OP(logical_xor) \
  /* copy.cpp */ \
  OP(cast) OP(copy) \
  /* creation.cpp */ \
  OP(full) OP(arange) OP(number) \
  /* views.cpp */ \
  OP(transpose) OP(permute) OP(slice) OP(select) OP(expand) OP(squeeze) OP(unsqueeze) \
  OP(unfold) OP(view) OP(place_slice) OP(fold) \
  /* strided.cpp */ \
  OP(strided_view) OP(update_view) \
  /* reduce.cpp */ \
  OP(sum) OP(mean) OP(max) OP(min) OP(var) OP(argmax) OP(logsumexp) OP(any) OP(all) OP(argmin) \
  /* reduce_prod.cpp, reduce_norm.cpp, reduce_cumsum.cpp */ \
  OP(prod) OP(norm) OP(std) OP(cumsum) \
  /* join.cpp, triangle.cpp */ \
  OP(concat) OP(stack) OP(unstack) OP(tril) OP(triu) \
  /* pad_roll.cpp, outer.cpp */ \
  OP(pad) OP(flip) OP(roll) OP(outer) \
  /* index.cpp, scatter.cpp */ \
  OP(gather) OP(scatter) OP(scatter_add) OP(embedding) OP(embedding_grad) \
  /* index_select.cpp */ \
  OP(index_select) OP(index_add) OP(one_hot) \
  /* sort.cpp, update_slice.cpp, sample_tokens.cpp */ \
  OP(sort) OP(topk) OP(update_slice) OP(draw_tokens) \
  /* conv.cpp, pool.cpp */ \
  OP(conv1d) OP(conv2d) OP(max_pool2d) OP(avg_pool2d) \
  /* matmul.cpp */ \
  OP(matmul) OP(linear) \
  /* epilogue.cpp */ \
  OP(matmul_gelu) OP(matmul_gelu_backward) OP(matmul_sums) OP(matmul_add) \
  /* attention.cpp, attention_backward.cpp, rope.cpp */ \
  OP(attention) OP(masked_attention) OP(attention_backward) OP(rope) OP(rope_table) \
  /* softmax.cpp, layer_norm.cpp, cross_entropy.cpp */ \
  OP(softmax) OP(layer_norm) OP(cross_entropy) \
  /* log_softmax.cpp, rms_norm.cpp, losses.cpp, dropout.cpp */ \
  OP(log_softmax) OP(rms_norm) OP(mse) OP(nll) OP(dropout) \
  /* softmax_backward.cpp, norm_backward.cpp, cross_entropy_backward.cpp, activation_backward.cpp */ \
  OP(softmax_backward) OP(log_softmax_backward) OP(layer_norm_backward) OP(rms_norm_backward) \
  OP(cross_entropy_backward) OP(classifier) OP(gelu_backward) OP(gelu_tanh_backward) \
  OP(silu_backward) \
  /* random.cpp */ \
  OP(uniform) OP(normal) OP(truncated_normal) OP(randint) OP(bernoulli) OP(permutation) \
  /* fp8.cpp */ \
  OP(matmul_scaled) OP(quantize)
// clang-format on

namespace brrr {

#define BRRR_OP(name) extern const OpDef name##_op;
BRRR_OPS(BRRR_OP)
#undef BRRR_OP

}  // namespace brrr
