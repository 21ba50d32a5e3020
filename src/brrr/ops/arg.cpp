#include "brrr/ops/arg.h"

#include "brrr/graph/trace.h"
#include "brrr/ops/op_list.h"

namespace brrr {

Tensor Arg::on(Device device) const {
  if (tensor_) return *tensor_;
  if (Tracer::current() || device.is_accelerator()) {
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

Tensor call_elementwise(const OpDef& op, const Arg& a, const Arg& b) {
  const Device device = a.is_tensor() ? a.device() : b.device();
  return call_one(op, {a.on(device), b.on(device)});
}

}  // namespace brrr
