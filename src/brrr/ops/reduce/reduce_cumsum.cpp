// Running sums along the last axis; other axes are brought there by a view. A row is one chain of
// additions, so rows are what threads share.
#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/rows/rows_cpu.h"
#include "brrr/kernels/scalar/wrap.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

TensorTypes infer_cumsum(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  check(!call.shape(0).empty(), "cumsum: a scalar has no axis to sum along");
  return {{call.shape(0), sum_dtype(call.dtype(0))}};
}

template <typename T>
void accumulate(T* values, int64_t count, bool from_end) {
  T total{};
  for (int64_t i = 0; i < count; ++i) {
    T& value = values[from_end ? count - 1 - i : i];
    total = add_wrapping(total, value);
    value = total;
  }
}

void cumsum_cpu(const KernelCall& call) {
  const kernels::Rows x(call.input(0)), y(call.output(0));
  const bool from_end = call.attrs.flag("from_end"), integral = !is_float(call.output(0).dtype);
  const ComputeType wide = integral ? ComputeType::i64 : ComputeType::f64;
  if (x.cols() == 0) return;
  kernels::for_each_row(call.pool, x.rows(), x.cols(), 1, [&](int64_t row, void* values) {
    x.read(row, wide, values);
    if (integral) {
      accumulate(static_cast<int64_t*>(values), x.cols(), from_end);
    } else {
      accumulate(static_cast<double*>(values), x.cols(), from_end);
    }
    y.write(row, wide, values);
  });
}

Tensors cumsum_reference(const ComposeCall& call) {
  const Tensor& x = call.input(0);
  const Tensor y = empty(x.shape(), sum_dtype(x.dtype()));
  const std::vector<double> values = x.to_vector<double>();
  const int64_t cols = x.shape().back();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t row = i / cols * cols;
    const bool from_end = call.attrs.flag("from_end");
    double total = 0;
    for (int64_t j = from_end ? row + cols - 1 : row; j != i; j += from_end ? -1 : 1)
      total += values[static_cast<size_t>(j)];
    store_float(y, i, total + values[static_cast<size_t>(i)]);
  }
  return {y};
}

std::vector<Sample> cumsum_samples() {
  std::vector<Sample> samples;
  uint32_t seed = 90;
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{0, 3}, Shape{3, 0}, Shape{4, 5},
                             Shape{2, 3, 33}, Shape{40, 900}}) {
    for (bool from_end : {false, true})
      samples.push_back({{sample_values(shape, seed++)}, {{"from_end", from_end}}});
  }
  return samples;
}

}  // namespace

const OpDef cumsum_op{
    .name = "cumsum",
    .formula = "sum of the elements so far, over the last axis",
    .kind = OpKind::other,
    .precision = &kWideResults,
    .dtypes = kAnyDType,
    .infer = infer_cumsum,
    .grad = [](const GradCall& call) -> Tensors {
      const bool from_end = call.attrs.flag("from_end");
      return {call_one(cumsum_op, {call.output_grad(0)}, {{"from_end", !from_end}})};
    },
    .reference = cumsum_reference,
    .cpu = cumsum_cpu,
    .samples = cumsum_samples};

Tensor cumsum(const Tensor& x, int64_t axis, ScanFrom from) {
  const int last = x.rank() - 1;
  const Attrs attrs{{"from_end", from == ScanFrom::end}};
  if (x.rank() == 0 || normalize_axis(axis, x.rank(), "cumsum") == last)
    return call_one(cumsum_op, {x}, attrs);
  return transpose(call_one(cumsum_op, {transpose(x, axis, last)}, attrs), axis, last);
}

}  // namespace brrr
