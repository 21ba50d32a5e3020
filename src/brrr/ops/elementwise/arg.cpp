#include "brrr/ops/elementwise/arg.h"

#include "brrr/graph/trace.h"
#include "brrr/ops/op_list.h"

namespace brrr {

Tensor Arg::on(Device device) const {
  if (tensor_) return *tensor_;
  if (graph::Tracer::current() || device.is_accelerator()) {
    Attrs attrs{{"dtype", dtype_}, {"device", device}};
    attrs.add({"value", dtype_ == DType::f64 ? AttrValue(float_value_) : AttrValue(int_value_)});
    return call_one(number_op, {}, attrs);
  }
  Tensor number = empty({}, dtype_, device);
  number.body().weak = true;
  if (!device.has_data()) return number;
  if (dtype_ == DType::f64) {
    *number.data<double>() = float_value_;
  } else if (dtype_ == DType::i64) {
    *number.data<int64_t>() = int_value_;
  } else {
    *number.data<bool>() = int_value_ != 0;
  }
  return number;
}

// Integers are taken modulo 2^64 beside u64. Sums, products and choices cannot tell -1 from 2^64 - 1; what compares
// or divides can.
void Arg::require_value_beside(DType other, const OpDef& op) const {
  const bool wraps = &op == &add_op || &op == &sub_op || &op == &mul_op || &op == &where_op;
  check(other != DType::u64 || dtype_ != DType::i64 || is_huge_ || int_value_ >= 0 || wraps,
        op.name, ": ", int_value_, " stands beside a u64 tensor, which has no negative values; ",
        "cast the tensor to i64 or to a float first");
  check(!is_huge_ || other == DType::u64 || is_float(other), op.name, ": ",
        static_cast<uint64_t>(int_value_), " stands beside ", other,
        " and is above the 2^63 - 1 of i64; use a u64 or a float tensor");
}

Tensor Arg::operand_of(const OpDef& op, DType other, Device device) const {
  if (tensor_) return *tensor_;
  require_value_beside(other, op);
  return is_huge_ && is_float(other) ? Arg(float_value_).on(device) : on(device);
}

Tensor call_elementwise(const OpDef& op, const Arg& a, const Arg& b) {
  const Device device = a.is_tensor() ? a.device() : b.device();
  return call_one(op, {a.operand_of(op, b.dtype(), device), b.operand_of(op, a.dtype(), device)});
}

}  // namespace brrr
