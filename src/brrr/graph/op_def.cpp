#include "brrr/graph/op_def.h"

#include <algorithm>
#include <mutex>

namespace brrr {
namespace {

// dtype of the operands of one sort, and whether there were any.
struct Promoted {
  std::string_view op;  // for the message
  bool any = false;
  DType dtype = DType::boolean;
  void include(DType other) {
    dtype = any ? promote(dtype, other, op) : other;
    any = true;
  }
};

// PyTorch: operands of a lower sort (scalars below tensors) widen the result only into a higher
// category (bool < integer < float), never within one.
Promoted combine(Promoted higher, Promoted lower) {
  if (!lower.any) return higher;
  if (!higher.any) return lower;
  if (is_float(higher.dtype)) return higher;
  if (higher.dtype == DType::boolean || is_float(lower.dtype)) higher.include(lower.dtype);
  return higher;
}

struct UserOps {
  std::mutex mutex;
  std::vector<const OpDef*> ops;
};
UserOps& user_ops() {
  static UserOps registered;
  return registered;
}

}  // namespace

std::string_view kind_name(OpKind kind) {
  constexpr std::array<std::string_view, 8> names = {
      "elementwise", "reduce", "view", "contraction", "gather", "random", "creation", "other"};
  return names[static_cast<size_t>(kind)];
}

std::string_view role_name(OpRole role) {
  switch (role) {
    case OpRole::none: return "none";
    case OpRole::matmul: return "matmul";
    case OpRole::linear: return "linear";
    case OpRole::matmul_epilogue: return "matmul_epilogue";
    case OpRole::attention: return "attention";
    case OpRole::attention_backward: return "attention_backward";
    case OpRole::cross_entropy: return "cross_entropy";
    case OpRole::cross_entropy_backward: return "cross_entropy_backward";
    case OpRole::cast: return "cast";
    case OpRole::copy: return "copy";
    case OpRole::quantize: return "quantize";
    case OpRole::reshape: return "reshape";
    case OpRole::transpose: return "transpose";
    case OpRole::concat: return "concat";
    case OpRole::place_slice: return "place_slice";
    case OpRole::scatter_add: return "scatter_add";
    case OpRole::embedding_backward: return "embedding_backward";
    case OpRole::full: return "full";
    case OpRole::number: return "number";
    case OpRole::repeat: return "repeat";
  }
  return "none";
}

Cost& Cost::operator+=(const Cost& other) {
  flops += other.flops;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  return *this;
}

DType promote_types(std::span<const TypeRef> operands, std::string_view op) {
  Promoted tensors{op}, scalars{op}, numbers{op};
  for (const TypeRef& operand : operands) {
    if (operand.weak) {
      numbers.include(operand.dtype == DType::f64 ? DType::f32 : operand.dtype);
    } else if (operand.shape->empty()) {
      scalars.include(operand.dtype);
    } else {
      tensors.include(operand.dtype);
    }
  }
  const DType result = combine(tensors, combine(scalars, numbers)).dtype;
  // A scalar does not widen tensors, so `promote` has not seen the two: their values have no common type all the same.
  if (tensors.any && scalars.any && is_integer(tensors.dtype) && is_integer(scalars.dtype) &&
      (tensors.dtype == DType::u64 || scalars.dtype == DType::u64))
    (void)promote(tensors.dtype, scalars.dtype, op);
  return result;
}

// Beside u64 only unsigned integers and bools come here, and host numbers that were checked (ops/elementwise/arg.h), even where
// the result is a narrower one: u64 holds them all.
ComputeType elementwise_type(DType result, std::span<const TypeRef> operands) {
  if (is_float(result)) return compute_type(result);
  const auto any = [&](auto is) {
    return std::any_of(operands.begin(), operands.end(),
                       [&](const TypeRef& operand) { return is(operand.dtype); });
  };
  if (any([](DType dtype) { return dtype == DType::u64; }) && !any(is_float))
    return ComputeType::u64;
  return compute_type(promote_types(operands));
}

TileFn tile_for(const OpDef& op, ComputeType type) {
  const TileKernels tiles = op.tiles();
  const TileFn functions[] = {tiles.f32, tiles.f64, tiles.i64, tiles.u64};
  const TileFn tile = functions[static_cast<size_t>(type)];
  check(tile != nullptr, op.name, ": has no loop that computes in ", natural_dtype(type),
        "; cast the operands to another dtype first");
  return tile;
}

TensorType promoted_type(const InferCall& call) {
  TensorType type{.shape = call.shape(0), .dtype = promote_types(call.inputs, call.op.name)};
  bool all_weak = true;
  for (int i = 0; i < call.size(); ++i) {
    if (call.shape(i) != type.shape)
      type.shape = broadcast_shapes(type.shape, call.shape(i), call.op.name);
    all_weak &= call.inputs[static_cast<size_t>(i)].weak;
  }
  type.weak = all_weak;
  check(call.op.dtypes.contains(type.dtype), call.op.name, ": does not take ", type.dtype,
        " operands", is_packed(type.dtype) ? " (packed for storage)" : "", "; cast them first");
  return type;
}

Cost cost_of(const CostCall& call) {
  const OpDef& op = call.call.op;
  if (op.cost) return op.cost(call);
  if (op.kind == OpKind::view) return {};
  Cost cost;
  for (const TypeRef& input : call.call.inputs) {
    cost.bytes_read += storage_bytes(input.dtype, numel(*input.shape));
  }
  for (const TensorType& output : call.outputs) {
    cost.bytes_written += storage_bytes(output.dtype, numel(output.shape));
  }
  cost.flops = op.flops_per_element * numel(call.outputs[0].shape);
  return cost;
}

std::vector<const OpDef*> all_ops() {
  const auto builtin = builtin_ops();
  std::vector<const OpDef*> ops(builtin.begin(), builtin.end());
  std::lock_guard lock(user_ops().mutex);
  ops.insert(ops.end(), user_ops().ops.begin(), user_ops().ops.end());
  return ops;
}

const OpDef* find_op(std::string_view name) {
  for (const OpDef* op : builtin_ops()) {
    if (op->name == name) return op;
  }
  std::lock_guard lock(user_ops().mutex);
  for (const OpDef* op : user_ops().ops) {
    if (op->name == name) return op;
  }
  return nullptr;
}

void register_op(const OpDef& op) {
  check(!find_op(op.name), "register_op: there is an op named ", op.name,
        " already; choose another name");
  check(op.infer && (op.compose || op.cpu || op.view), "register_op: ", op.name,
        " needs `infer` and at least one of `compose`, `cpu`, `view`");
  std::lock_guard lock(user_ops().mutex);
  user_ops().ops.push_back(&op);
}

}  // namespace brrr
