#include "brrr/sweep/compiled.h"

#include "brrr/autodiff/grad.h"
#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/runtime/compile.h"
#include "brrr/sweep/compare.h"

namespace brrr::sweep {
namespace {

// The op between elementwise neighbours that it may be fused with: operands and results of floats are
// negated, which changes no magnitude.
Tensors with_neighbours(const Case& c, std::span<const Tensor> inputs) {
  Tensors operands;
  for (const Tensor& x : inputs) operands.push_back(is_float(x.dtype()) ? neg(neg(x)) : x);
  Tensors results = call_op(*c.op, operands, c.attrs);
  const int made = results.size();
  for (int i = 0; i < made; ++i) {
    if (is_float(results[i].dtype())) results.push_back(neg(results[i]));
  }
  return results;
}

// d (sum of all float results) / d each float operand.
Tensors gradients(const Case& c, std::span<const Tensor> inputs) {
  Tensors leaves;
  std::vector<Tensor> wanted;
  for (const Tensor& x : inputs) {
    leaves.push_back(x.detach());
    if (!is_float(x.dtype())) continue;
    leaves[leaves.size() - 1].require_grad();
    wanted.push_back(leaves[leaves.size() - 1]);
  }
  Tensor total;
  for (const Tensor& result : call_op(*c.op, leaves, c.attrs)) {
    if (!is_float(result.dtype()) || !result.requires_grad()) continue;
    const Tensor part = sum(cast(result, DType::f64) * 0.75);
    total = total.defined() ? total + part : part;
  }
  if (!total.defined() || wanted.empty()) return {};
  Tensors grads;
  for (const Tensor& g : grad(total, wanted)) grads.push_back(g);
  return grads;
}

template <typename Program>
void compare(const Case& c, std::string_view what, const Program& program) {
  const Tensors expected = program(c, c.inputs);
  for (const compiler::PipelineOptions& options :
       {compiler::PipelineOptions{}, compiler::PipelineOptions{.without = {"fuse"}}}) {
    runtime::CompiledFunction compiled(
        [&](std::span<const Tensor> inputs) { return program(c, inputs); }, options);
    const Tensors got = compiled.run(c.inputs);
    check(got.size() == expected.size(), c, ": compiled, it gives ", got.size(), " results, not ",
          expected.size());
    for (int i = 0; i < got.size(); ++i) require_same_bits(c, what, got[i], expected[i]);
  }
}

}  // namespace

void check_compiled(const OpDef& op) {
  for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32}) {
    if (!op.dtypes.contains(dtype)) continue;
    for (const Case& c : cases_of(op, dtype)) {
      compare(c, "compiled between neighbours", with_neighbours);
      if (is_differentiable(op) && is_float(dtype)) compare(c, "compiled gradient", gradients);
    }
  }
}

}  // namespace brrr::sweep
