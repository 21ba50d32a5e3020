// The ops of op_list.h as values.
#include "brrr/graph/basic_ops.h"
#include "brrr/ops/op_list.h"

namespace brrr {

std::span<const OpDef* const> builtin_ops() {
#define BRRR_OP(name) &name##_op,
  static constexpr const OpDef* kOps[] = {BRRR_OPS(BRRR_OP)};
#undef BRRR_OP
  return kOps;
}

const BasicOps& basic_ops() {
  static constexpr BasicOps kBasic{.cast = cast_op,
                                   .copy = copy_op,
                                   .full = full_op,
                                   .number = number_op,
                                   .select = select_op,
                                   .strided_view = strided_view_op,
                                   .update_view = update_view_op};
  return kBasic;
}

}  // namespace brrr
