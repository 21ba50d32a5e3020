// Type rules that many ops share.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr {

// The input's own type.
TensorTypes infer_same(const InferCall& call);
// The input's type; integers and bools become f32, as in sqrt(4).
TensorTypes infer_float(const InferCall& call);
// Broadcast shape and promoted dtype.
TensorTypes infer_promoted(const InferCall& call);
// The same, with integers and bools becoming f32: true division.
TensorTypes infer_promoted_float(const InferCall& call);
// Broadcast shape, bool.
TensorTypes infer_comparison(const InferCall& call);

// Throws Error unless the op takes this dtype.
void require_dtype(const InferCall& call, DType dtype);

// Throws Error unless input `i` is a key of random numbers, i64[3].
void require_key(const InferCall& call, int i);

}  // namespace brrr
