#include "brrr/ops/infer.h"

namespace brrr {

void require_dtype(const InferCall& call, DType dtype) {
  check(call.op.dtypes.contains(dtype), call.op.name, ": does not take ", dtype, " operands",
        is_packed(dtype) ? " (packed for storage)" : "", "; cast them first");
}

TensorTypes infer_same(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  return {{call.shape(0), call.dtype(0), call.inputs[0].weak}};
}

TensorTypes infer_float(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  const DType dtype = is_float(call.dtype(0)) ? call.dtype(0) : DType::f32;
  return {{call.shape(0), dtype, call.inputs[0].weak}};
}

TensorTypes infer_promoted(const InferCall& call) { return {promoted_type(call)}; }

TensorTypes infer_promoted_float(const InferCall& call) {
  TensorType type = promoted_type(call);
  if (!is_float(type.dtype)) type.dtype = DType::f32;
  return {type};
}

TensorTypes infer_comparison(const InferCall& call) {
  TensorType type = promoted_type(call);
  type.dtype = DType::boolean;
  return {type};
}

void require_key(const InferCall& call, int i) {
  check(call.shape(i) == Shape{3} && call.dtype(i) == DType::i64, call.op.name,
        ": the key must be i64[3] ", "(seed, stream, draw), not ", call.dtype(i), call.shape(i),
        "; make it with key_tensor()");
}

}  // namespace brrr
