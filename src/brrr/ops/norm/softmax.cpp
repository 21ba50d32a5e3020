#include "brrr/ops/norm/softmax.h"

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/rows/rows_cpu.h"
#include "brrr/kernels/cpu/rows/softmax_rows.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

TensorTypes infer_softmax(const InferCall& call) {
  check(!call.shape(0).empty(), "softmax: a scalar has no axis to normalise over");
  return infer_same(call);
}

Tensors softmax_compose(const ComposeCall& call) {
  const Tensor x =
      cast(call.input(0), call.input(0).dtype() == DType::f64 ? DType::f64 : DType::f32);
  if (x.numel() == 0) return {clone(call.input(0))};
  const Tensor e =
      exp(x - max(x, {-1}, KeepDims::yes));  // shifting by the row maximum keeps exp finite
  return {cast(e / sum(e, {-1}, KeepDims::yes), call.input(0).dtype())};
}

Tensors softmax_grad(const GradCall& call) {
  return {call_one(softmax_backward_op, {call.output(0), call.output_grad(0)})};
}

void softmax_cpu(const KernelCall& call) {
  const kernels::Rows x(call.input(0)), y(call.output(0));
  const int64_t cols = x.cols();
  if (cols == 0) return;
  const ComputeType type = compute_type(call.output(0).dtype);
  const kernels::SoftmaxRows kernels = kernels::find_softmax_rows(type);
  const kernels::RowStore store = y.store(type);
  const bool in_place =
      x.is_direct(type) && y.is_direct(type) && store == kernels::RowStore::cached;
  kernels::for_each_row(
      call.pool, x.rows(), cols, in_place ? 0 : 2, [&](int64_t row, double* buffer) {
        const void* values = x.view(row, type, buffer);
        void* result = y.target(row, type, buffer + cols);
        void* work = store == kernels::RowStore::streamed ? buffer + cols : result;
        kernels.softmax(values, work, result, cols, store);
        y.deliver(row, type, result);
      });
}

std::vector<Sample> softmax_samples() {
  std::vector<Sample> samples;
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{0, 3}, Shape{3, 0}, Shape{4, 5},
                             Shape{2, 3, 33}, Shape{20, 2100}}) {
    samples.push_back({{sample_values(shape, 110, -4, 4)}, {}});
  }
  return samples;
}

}  // namespace

const OpDef softmax_op{.name = "softmax",
                       .formula = "exp(x - max) / sum, over the last axis",
                       .kind = OpKind::reduce,
                       .precision = &kExactInEveryType,
                       .flops_per_element = 5,
                       .infer = infer_softmax,
                       .grad = softmax_grad,
                       .grad_reads = {.outputs = 1},
                       .compose = softmax_compose,
                       .cpu = softmax_cpu,
                       .streams = {.inputs = 1, .outputs = 1},
                       .samples = softmax_samples};

Tensor softmax(const Tensor& x, int64_t axis) {
  const int last = x.rank() - 1;
  if (x.rank() == 0 || normalize_axis(axis, x.rank(), "softmax") == last)
    return call_one(softmax_op, {x});
  return transpose(call_one(softmax_op, {transpose(x, axis, last)}), axis, last);
}

}  // namespace brrr
