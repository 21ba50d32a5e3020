#include "brrr/ops/view/outer.h"

#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

TensorTypes infer_outer(const InferCall& call) {
  const Shape &a = call.shape(0), &b = call.shape(1);
  check(a.size() == 1 && b.size() == 1, "outer: operands of shape ", a, " and ", b,
        " must be vectors; reshape them to [n], or multiply with *, which broadcasts");
  const DType dtype = promote_types(call.inputs, call.op.name);
  require_dtype(call, dtype);
  return {{{a[0], b[0]}, dtype}};
}

std::vector<Sample> outer_samples() {
  return {{{sample_values({3}, 240), sample_values({4}, 241)}, {}},
          {{sample_values({1}, 242), sample_values({1}, 243)}, {}},
          {{sample_values({0}, 244), sample_values({2}, 245)}, {}},
          // dtypes differ
          {{sample_values({2}, 246), cast(sample_indices({3}, 247, 5), DType::u8)}, {}},
          {{sample_values({170}, 248), sample_values({200}, 249)}, {}}};
}

}  // namespace

const OpDef outer_op{.name = "outer",
                     .formula = "y[i, j] = a[i] * b[j]",
                     .kind = OpKind::other,
                     .dtypes = kAnyDType,
                     .infer = infer_outer,
                     .compose = [](const ComposeCall& call) -> Tensors {
                       return {unsqueeze(call.input(0), 1) * unsqueeze(call.input(1), 0)};
                     },
                     .samples = outer_samples};

Tensor outer(const Tensor& a, const Tensor& b) { return call_one(outer_op, {a, b}); }

}  // namespace brrr
