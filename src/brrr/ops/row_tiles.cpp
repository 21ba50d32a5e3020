#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/ops/row_tiles.cpp"
#include "brrr/ops/row_tiles.h"

#include <algorithm>

#include "brrr/base/scalar_math.h"
#include "brrr/ops/reduce_tiles.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::HWY_NAMESPACE {

template <typename T>
constexpr ComputeType type_of() {
  return sizeof(T) == 4 ? ComputeType::f32 : ComputeType::f64;
}

// Reduces a row tile by tile.
template <typename T>
double reduce_tiles(Reduction reduction, const T* x, int64_t count) {
  const ReduceKernels kernels = find_reduce_kernels(reduction, type_of<T>());
  double total = 0, partial = 0;
  kernels.row(x, std::min(count, kTileElements), &total);
  for (int64_t i = kTileElements; i < count; i += kTileElements) {
    kernels.row(x + i, std::min(count - i, kTileElements), &partial);
    kernels.combine(&total, &partial, 1);
  }
  return total;
}

template <typename T>
double row_max(const void* x, int64_t count) {
  return reduce_tiles(Reduction::max, static_cast<const T*>(x), count);
}

template <typename T>
double row_sum(const void* x, int64_t count) {
  return reduce_tiles(Reduction::sum, static_cast<const T*>(x), count);
}

template <typename T>
double row_sum_of_squares(const void* values, double center, int64_t count) {
  const T* x = static_cast<const T*>(values);
  const T middle = static_cast<T>(center);
  T squares[kTileElements];
  double total = 0;
  for (int64_t i = 0; i < count; i += kTileElements) {
    const int64_t n = std::min(count - i, kTileElements);
    for (int64_t j = 0; j < n; ++j) squares[j] = (x[i + j] - middle) * (x[i + j] - middle);
    double partial = 0;
    find_reduce_kernels(Reduction::sum, type_of<T>()).row(squares, n, &partial);
    total += partial;
  }
  return total;
}

template <typename T>
void row_exp_shifted(const void* values, double shift, void* result, int64_t count) {
  const T* x = static_cast<const T*>(values);
  T* y = static_cast<T*>(result);
  const T s = static_cast<T>(shift);
  for (int64_t i = 0; i < count; ++i) y[i] = math::exp(x[i] - s);
}

template <typename T>
void row_divide(void* result, double divisor, int64_t count) {
  T* y = static_cast<T*>(result);
  const T d = static_cast<T>(divisor);
  for (int64_t i = 0; i < count; ++i) y[i] = y[i] / d;
}

template <typename T>
void row_subtract_both(void* result, double first, double second, int64_t count) {
  T* y = static_cast<T*>(result);
  const T a = static_cast<T>(first), b = static_cast<T>(second);
  for (int64_t i = 0; i < count; ++i) y[i] = (y[i] - a) - b;
}

template <typename T>
void row_normalize(const void* values, double center, double scale, const void* weights,
                   const void* biases, void* result, int64_t count) {
  const T *x = static_cast<const T*>(values), *w = static_cast<const T*>(weights),
          *b = static_cast<const T*>(biases);
  T* y = static_cast<T*>(result);
  const T c = static_cast<T>(center), s = static_cast<T>(scale);
  for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - c) * s * w[i] + b[i];
}

template <typename T>
RowKernels kernels_for() {
  return {&row_max<T>,    &row_sum<T>,           &row_sum_of_squares<T>, &row_exp_shifted<T>,
          &row_divide<T>, &row_subtract_both<T>, &row_normalize<T>};
}

RowKernels row_table(ComputeType type) {
  return type == ComputeType::f64 ? kernels_for<double>() : kernels_for<float>();
}

}  // namespace brrr::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr {
HWY_EXPORT(row_table);
RowKernels find_row_kernels(ComputeType type) { return HWY_DYNAMIC_DISPATCH(row_table)(type); }
}  // namespace brrr
#endif
