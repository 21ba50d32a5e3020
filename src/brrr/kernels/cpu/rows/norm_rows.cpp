#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/kernels/cpu/rows/norm_rows.cpp"
#include "brrr/kernels/cpu/rows/norm_rows.h"

#include <cmath>

#include "hwy/foreach_target.h"
// after foreach_target.h
#include "brrr/kernels/cpu/rows/row_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE {

template <typename T>
double scale_around(const T* x, int64_t count, T center, double eps) {
  const double squares = row_sum<T>(
      count, [x, center](int64_t i) HWY_ATTR { return (x[i] - center) * (x[i] - center); });
  return 1 / std::sqrt(squares / static_cast<double>(count) + eps);
}

template <typename T>
NormStatistics layer_norm_row(const NormForward& row) {
  const T *x = static_cast<const T*>(row.x), *weight = static_cast<const T*>(row.weight),
          *bias = static_cast<const T*>(row.bias);
  const double mean = row_sum<T>(row.count, [x](int64_t i) HWY_ATTR { return x[i]; }) /
                      static_cast<double>(row.count);
  const T center = static_cast<T>(mean);
  const double inverse_std = scale_around(x, row.count, center, row.eps);
  const T scale = static_cast<T>(inverse_std);
  write_row(static_cast<T*>(row.y), row.count, row.store,
            [=](int64_t i) HWY_ATTR { return (x[i] - center) * scale * weight[i] + bias[i]; });
  return {mean, inverse_std};
}

template <typename T>
NormStatistics rms_norm_row(const NormForward& row) {
  const T *x = static_cast<const T*>(row.x), *weight = static_cast<const T*>(row.weight);
  const double inverse_rms = scale_around(x, row.count, T(0), row.eps);
  const T scale = static_cast<T>(inverse_rms);
  write_row(static_cast<T*>(row.y), row.count, row.store,
            [=](int64_t i) HWY_ATTR { return x[i] * scale * weight[i]; });
  return {0, inverse_rms};
}

template <typename T>
void layer_norm_backward_row(const NormBackward& row) {
  const T *x = static_cast<const T*>(row.x), *dy = static_cast<const T*>(row.dy),
          *weight = static_cast<const T*>(row.weight);
  const T center = static_cast<T>(row.statistics.center),
          scale = static_cast<T>(row.statistics.scale);
  const auto g = [=](int64_t i) HWY_ATTR { return dy[i] * weight[i]; };
  const auto x_hat = [=](int64_t i) HWY_ATTR { return (x[i] - center) * scale; };
  const auto count = static_cast<double>(row.count);
  const T mean = static_cast<T>(row_sum<T>(row.count, g) / count);
  const T along = static_cast<T>(
      row_sum<T>(row.count, [=](int64_t i) HWY_ATTR { return g(i) * x_hat(i); }) / count);
  T* HWY_RESTRICT weight_sums = static_cast<T*>(row.weight_sums);
  T* HWY_RESTRICT bias_sums = static_cast<T*>(row.bias_sums);
  const auto fill = [=](T* HWY_RESTRICT out, int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      out[i - begin] = (g(i) - mean - x_hat(i) * along) * scale;
      weight_sums[i] += dy[i] * x_hat(i);
      bias_sums[i] += dy[i];
    }
  };
  write_tiles(static_cast<T*>(row.dx), row.count, row.store, fill);
}

template <typename T>
void rms_norm_backward_row(const NormBackward& row) {
  const T *x = static_cast<const T*>(row.x), *dy = static_cast<const T*>(row.dy),
          *weight = static_cast<const T*>(row.weight);
  const T scale = static_cast<T>(row.statistics.scale);
  const auto g = [=](int64_t i) HWY_ATTR { return dy[i] * weight[i]; };
  const auto x_hat = [=](int64_t i) HWY_ATTR { return x[i] * scale; };
  const T along =
      static_cast<T>(row_sum<T>(row.count, [=](int64_t i) HWY_ATTR { return g(i) * x_hat(i); }) /
                     static_cast<double>(row.count));
  T* HWY_RESTRICT weight_sums = static_cast<T*>(row.weight_sums);
  const auto fill = [=](T* HWY_RESTRICT out, int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      out[i - begin] = (g(i) - x_hat(i) * along) * scale;
      weight_sums[i] += dy[i] * x_hat(i);
    }
  };
  write_tiles(static_cast<T*>(row.dx), row.count, row.store, fill);
}

template <typename T>
void add_part(double* HWY_RESTRICT totals, const void* part, int64_t count) {
  const T* HWY_RESTRICT values = static_cast<const T*>(part);
  for (int64_t i = 0; i < count; ++i) totals[i] += static_cast<double>(values[i]);
}

template <typename T>
NormRows norm_rows_of() {
  return {&layer_norm_row<T>, &rms_norm_row<T>, &layer_norm_backward_row<T>,
          &rms_norm_backward_row<T>, &add_part<T>};
}

NormRows norm_table(ComputeType type) {
  return type == ComputeType::f64 ? norm_rows_of<double>() : norm_rows_of<float>();
}

}  // namespace brrr::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr::kernels {
HWY_EXPORT(norm_table);
NormRows find_norm_rows(ComputeType type) { return HWY_DYNAMIC_DISPATCH(norm_table)(type); }
}  // namespace brrr::kernels
#endif
