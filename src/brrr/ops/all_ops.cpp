// The list of ops. What is not here does not exist for the sweep, the compiler or the documentation.
#include "brrr/ops/op_list.h"

namespace brrr {

std::span<const OpDef* const> builtin_ops() {
  static constexpr const OpDef* kOps[] = {
      &neg_op,           &abs_op,           &sign_op,      &square_op,
      &relu_op,          &exp_op,           &log_op,       &sqrt_op,
      &rsqrt_op,         &reciprocal_op,    &sin_op,       &cos_op,
      &tanh_op,          &sigmoid_op,       &erf_op,       &gelu_op,
      &silu_op,          &add_op,           &sub_op,       &mul_op,
      &div_op,           &pow_op,           &maximum_op,   &minimum_op,
      &equal_op,         &not_equal_op,     &less_op,      &less_equal_op,
      &greater_op,       &greater_equal_op, &where_op,     &cast_op,
      &copy_op,          &full_op,          &arange_op,    &transpose_op,
      &permute_op,       &slice_op,         &select_op,    &expand_op,
      &squeeze_op,       &unsqueeze_op,     &unfold_op,    &view_op,
      &place_slice_op,   &fold_op,          &sum_op,       &mean_op,
      &max_op,           &min_op,           &var_op,       &argmax_op,
      &logsumexp_op,     &concat_op,        &tril_op,      &triu_op,
      &gather_op,        &scatter_add_op,   &embedding_op, &embedding_grad_op,
      &matmul_op,        &linear_op,        &softmax_op,   &layer_norm_op,
      &cross_entropy_op, &uniform_op,       &normal_op,    &truncated_normal_op,
      &randint_op};
  return kOps;
}

}  // namespace brrr
