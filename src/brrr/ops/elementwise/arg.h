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
        int_value_(static_cast<int64_t>(value)),
        is_huge_(std::unsigned_integral<Number> && int_value_ < 0) {}

  bool is_tensor() const { return tensor_ != nullptr; }
  const Tensor& tensor() const { return *tensor_; }
  DType dtype() const { return tensor_ ? tensor_->dtype() : dtype_; }
  Device device() const { return tensor_ ? tensor_->device() : Device::cpu(); }
  // The tensor itself, or the number as a weak scalar on `device`.
  Tensor on(Device device) const;
  // The same as an operand of `op` beside one of `other`. Throws Error for a number that they would take for another.
  Tensor operand_of(const OpDef& op, DType other, Device device) const;

 private:
  void require_value_beside(DType other, const OpDef& op) const;

  const Tensor* tensor_ = nullptr;
  DType dtype_ = DType::f64;
  double float_value_ = 0;
  int64_t int_value_ = 0;  // modulo 2^64 where the number is huge
  bool is_huge_ = false;   // an integer of 2^63 and more: u64 and floats hold it
};

// Calls an elementwise op on operands of which at least one is a tensor.
Tensor call_elementwise(const OpDef& op, const Arg& a, const Arg& b);

}  // namespace brrr
