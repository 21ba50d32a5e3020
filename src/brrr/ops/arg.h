// An operand in an expression: a tensor, or a host number that becomes a constant beside one.
#pragma once

#include <concepts>

#include "brrr/graph/call.h"
#include "brrr/tensor/tensor.h"

namespace brrr {

class Arg {
 public:
  Arg(const Tensor& tensor) : tensor_(&tensor) {}  // NOLINT: tensors and numbers mix in expressions
  template <typename Number>
  requires std::is_arithmetic_v<Number> Arg(Number value)  // NOLINT
      : dtype_(std::floating_point<Number>  ? DType::f64
               : std::same_as<Number, bool> ? DType::boolean
                                            : DType::i64),
        float_value_(static_cast<double>(value)),
        int_value_(static_cast<int64_t>(value)) {}

  bool is_tensor() const { return tensor_ != nullptr; }
  const Tensor& tensor() const { return *tensor_; }
  Device device() const { return tensor_ ? tensor_->device() : Device::cpu(); }
  // The tensor itself, or the number as a weak scalar on `device`.
  Tensor on(Device device) const;

 private:
  const Tensor* tensor_ = nullptr;
  DType dtype_ = DType::f64;
  double float_value_ = 0;
  int64_t int_value_ = 0;
};

// Calls an elementwise op on operands of which at least one is a tensor.
Tensor call_elementwise(const OpDef& op, const Arg& a, const Arg& b);

}  // namespace brrr
