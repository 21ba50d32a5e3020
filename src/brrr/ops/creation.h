// Tensors out of nothing, out of numbers, and out of memory.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "brrr/device/default_device.h"
#include "brrr/ops/arg.h"
#include "brrr/tensor/tensor.h"

namespace brrr {

// Where and what a new tensor is: zeros({2, 3}, {.dtype = DType::bf16}).
struct TensorOptions {
  DType dtype = DType::f32;
  Device device = default_device();
};

Tensor full(const Shape& shape, double value, TensorOptions options = {});
Tensor zeros(const Shape& shape, TensorOptions options = {});
Tensor ones(const Shape& shape, TensorOptions options = {});
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
// start, start + step, ... up to, not including, stop.
Tensor arange(double start, double stop, double step = 1,
              TensorOptions options = {.dtype = DType::i64});
Tensor arange(int64_t count);
// `count` points from start to stop, both included.
Tensor linspace(double start, double stop, int64_t count, TensorOptions options = {});
Tensor eye(int64_t rows, int64_t cols = -1, TensorOptions options = {});

// Numbers in nested braces, as deep as a tensor has axes. {{1}, {2}} is a column.
class Literal {
 public:
  Literal(double value) : value_(value) {}                                          // NOLINT
  Literal(std::initializer_list<Literal> items) : items_(items), is_list_(true) {}  // NOLINT

  Shape shape() const;  // throws Error where lists beside each other differ in shape
  void append_values(std::vector<double>& values) const;

 private:
  double value_ = 0;
  std::vector<Literal> items_;
  bool is_list_ = false;
};

// tensor(5), tensor({1, 2, 3}), tensor({{1, 2}, {3, 4}}, DType::f64)
Tensor tensor(const Literal& values, DType dtype = DType::f32);

// A copy of `values` under `shape`; the dtype is that of the C++ type.
template <StorageType T>
Tensor from_values(std::span<const T> values, const Shape& shape) {
  check(static_cast<int64_t>(values.size()) == numel(shape), "from_values: ", values.size(),
        " values do not fill shape ", shape);
  CategoryScope scope(Category::data);
  Tensor x = empty(shape, dtype_of<T>());
  std::copy(values.begin(), values.end(), x.data<T>());
  return x;
}
template <StorageType T>
Tensor from_values(const std::vector<T>& values, const Shape& shape) {
  return from_values(std::span<const T>(values), shape);
}

}  // namespace brrr
