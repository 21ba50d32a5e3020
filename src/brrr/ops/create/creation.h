// Tensors out of nothing, out of numbers, and out of memory.
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <vector>

#include "brrr/device/default_device.h"
#include "brrr/ops/elementwise/arg.h"
#include "brrr/tensor/tensor.h"

namespace brrr {

// Where and what a new tensor is: zeros({2, 3}, {.dtype = DType::bf16, .device = gpu}).
struct TensorOptions {
  DType dtype = DType::f32;
  Device device = default_device();
};

// One setting alone stands for the options: zeros({2, 3}, DType::bf16), zeros({2, 3}, gpu). A template
// takes it, so that {} means the defaults and never a DType of zero.
template <typename T>
concept TensorSetting = std::same_as<T, DType> || std::same_as<T, Device>;
inline TensorOptions with_setting(DType dtype, TensorOptions options = {}) {
  options.dtype = dtype;
  return options;
}
inline TensorOptions with_setting(Device device, TensorOptions options = {}) {
  options.device = device;
  return options;
}

Tensor full(const Shape& shape, double value, TensorOptions options = {});
Tensor full(const Shape& shape, double value, TensorSetting auto setting) {
  return full(shape, value, with_setting(setting));
}
Tensor zeros(const Shape& shape, TensorOptions options = {});
Tensor zeros(const Shape& shape, TensorSetting auto setting) {
  return zeros(shape, with_setting(setting));
}
Tensor ones(const Shape& shape, TensorOptions options = {});
Tensor ones(const Shape& shape, TensorSetting auto setting) {
  return ones(shape, with_setting(setting));
}
// With the dtype and on the device of x, but for what is named.
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor zeros_like(const Tensor& x, TensorSetting auto setting) {
  return zeros(x.shape(), with_setting(setting, {x.dtype(), x.device()}));
}
Tensor ones_like(const Tensor& x, TensorSetting auto setting) {
  return ones(x.shape(), with_setting(setting, {x.dtype(), x.device()}));
}
// start, start + step, ... up to, not including, stop. i64 where nothing else is said.
Tensor arange(double start, double stop, double step = 1,
              TensorOptions options = {.dtype = DType::i64});
Tensor arange(double start, double stop, double step, TensorSetting auto setting) {
  return arange(start, stop, step, with_setting(setting, {.dtype = DType::i64}));
}
Tensor arange(double start, double stop, TensorSetting auto setting) {
  return arange(start, stop, 1, setting);
}
Tensor arange(int64_t count);  // 0, 1, ... count - 1
Tensor arange(int64_t count, TensorSetting auto setting) {
  return arange(0, static_cast<double>(count), 1, setting);
}
// `count` points from start to stop, both included.
Tensor linspace(double start, double stop, int64_t count, TensorOptions options = {});
Tensor linspace(double start, double stop, int64_t count, TensorSetting auto setting) {
  return linspace(start, stop, count, with_setting(setting));
}
Tensor eye(int64_t rows, int64_t cols = -1, TensorOptions options = {});
Tensor eye(int64_t rows, int64_t cols, TensorSetting auto setting) {
  return eye(rows, cols, with_setting(setting));
}
Tensor eye(int64_t rows, TensorSetting auto setting) { return eye(rows, rows, setting); }

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

// tensor(5), tensor({1, 2, 3}), tensor({{1, 2}, {3, 4}}, DType::f64). On the host unless a device is named.
Tensor tensor(const Literal& values, TensorOptions options = {.device = Device::cpu()});
Tensor tensor(const Literal& values, TensorSetting auto setting) {
  return tensor(values, with_setting(setting, {.device = Device::cpu()}));
}

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
