// The ops of op_list.h as values.
#include "brrr/ops/op_list.h"

namespace brrr {

std::span<const OpDef* const> builtin_ops() {
#define BRRR_OP(name) &name##_op,
  static constexpr const OpDef* kOps[] = {BRRR_OPS(BRRR_OP)};
#undef BRRR_OP
  return kOps;
}

}  // namespace brrr
