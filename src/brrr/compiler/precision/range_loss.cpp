#include "brrr/compiler/precision/range_loss.h"

#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/graph/interpret.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/matmul/fp8.h"
#include "brrr/ops/op_list.h"
#include "brrr/tensor/dtype.h"

namespace brrr::compiler {
namespace {

bool is_low(const Tensor& x) { return is_float(x.dtype()) && bit_size(x.dtype()) < 32; }

Tensor widened(const Tensor& x) {
  return is_low(x) ? call_one(cast_op, {x}, {{"dtype", DType::f32}}) : x;
}

// What the node would give without low types: its op on f32 operands.
Tensors wide_results(const Node& node, const Tensors& operands) {
  if (node.op->role == OpRole::cast) return {widened(operands[0])};
  Tensors wide;
  for (const Tensor& x : operands) wide.push_back(widened(x));
  Attrs attrs;
  for (const Attr& attr : node.attrs) {
    const bool is_dtype = std::holds_alternative<DType>(attr.value);
    attrs.add(is_dtype ? Attr{attr.name, DType::f32} : attr);
  }
  // Its kernels write 8 bits alone.
  if (node.op->role == OpRole::quantize) return node.op->compose({wide, attrs});
  return call_op(*node.op, wide, attrs);
}

RangeLoss compare(const Tensor& stored, const Tensor& exact) {
  const std::vector<float> low = to(stored, Device::cpu()).to_vector<float>(),
                           wide = to(exact, Device::cpu()).to_vector<float>();
  const double largest = finfo(stored.dtype()).max;
  RangeLoss loss{.stored = static_cast<int64_t>(low.size())};
  for (size_t i = 0; i < low.size(); ++i) {
    loss.underflows += wide[i] != 0 && low[i] == 0;
    loss.overflows += std::isfinite(wide[i]) && std::abs(wide[i]) > largest;
  }
  return loss;
}

}  // namespace

RangeLoss& RangeLoss::operator+=(const RangeLoss& other) {
  stored += other.stored;
  underflows += other.underflows;
  overflows += other.overflows;
  return *this;
}

RangeLoss RangeLosses::all() const {
  RangeLoss sum = forward;
  return (sum += backward) += update;
}

RangeLosses count_range_losses(const Graph& graph, std::span<const Tensor> inputs) {
  RangeLosses losses;
  graph::interpret(graph, inputs, {},
                   [&](const Node& node, const Tensors& operands, const Tensors& made) {
                     // Views and copies compute nothing, and the nodes of a body have been seen.
                     if (node.op->kind == OpKind::view || node.body) return;
                     bool stores_low = false;
                     for (const Tensor& x : made) stores_low = stores_low || is_low(x);
                     if (!stores_low) return;
                     const Tensors exact = wide_results(node, operands);
                     RangeLoss& part = node.phase == Phase::backward ? losses.backward
                                       : node.phase == Phase::update ? losses.update
                                                                     : losses.forward;
                     const int count = node.op->role == OpRole::quantize
                                           ? 1
                                           : made.size();  // its results are the same numbers
                     for (int i = 0; i < count; ++i) {
                       if (is_low(made[i])) part += compare(made[i], exact[i]);
                     }
                   });
  return losses;
}

}  // namespace brrr::compiler
