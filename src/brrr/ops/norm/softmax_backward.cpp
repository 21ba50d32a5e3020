// The gradients of softmax and log_softmax in one walk over the rows. Neither has a rule of its own:
// where gradients of gradients are wanted the compositions are recorded instead.
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

namespace brrr {
namespace {

TensorTypes infer_backward(const InferCall& call) {
  check(!call.shape(0).empty(), call.op.name, ": a scalar has no axis to normalise over");
  check(call.shape(0) == call.shape(1) && call.dtype(0) == call.dtype(1), call.op.name,
        ": the result is ", call.dtype(0), call.shape(0), " and its gradient ", call.dtype(1),
        call.shape(1), "; they must be alike");
  return infer_same(call);
}

Tensor widened(const Tensor& x) {
  return cast(x, x.dtype() == DType::f64 ? DType::f64 : DType::f32);
}

Tensors softmax_backward_compose(const ComposeCall& call) {
  const Tensor y = widened(call.input(0)), dy = widened(call.input(1));
  return {cast(y * (dy - sum(dy * y, {-1}, KeepDims::yes)), call.input(0).dtype())};
}

Tensors log_softmax_backward_compose(const ComposeCall& call) {
  const Tensor y = widened(call.input(0)), dy = widened(call.input(1));
  return {cast(dy - exp(y) * sum(dy, {-1}, KeepDims::yes), call.input(0).dtype())};
}

using BackwardRow = decltype(kernels::SoftmaxRows::softmax_backward);

template <BackwardRow kernels::SoftmaxRows::*kKernel>
void backward_cpu(const KernelCall& call) {
  const kernels::Rows y(call.input(0)), dy(call.input(1)), dx(call.output(0));
  const int64_t cols = y.cols();
  if (cols == 0) return;
  const ComputeType type = compute_type(call.output(0).dtype);
  const BackwardRow kernel = kernels::find_softmax_rows(type).*kKernel;
  const bool in_place = y.is_direct(type) && dy.is_direct(type) && dx.is_direct(type);
  kernels::for_each_row(call.pool, y.rows(), cols, in_place ? 0 : 3,
                        [&](int64_t row, double* buffer) {
                          const void* result = y.view(row, type, buffer);
                          const void* gradient = dy.view(row, type, buffer + cols);
                          void* out = dx.target(row, type, buffer + 2 * cols);
                          kernel(result, gradient, out, cols, dx.store(type));
                          dx.deliver(row, type, out);
                        });
}

template <uint32_t kSeed>
std::vector<Sample> backward_samples() {
  std::vector<Sample> samples;
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{0, 3}, Shape{3, 0}, Shape{4, 5},
                             Shape{2, 3, 33}, Shape{20, 2100}}) {
    samples.push_back(
        {{sample_values(shape, kSeed, -2, 0.5), sample_values(shape, kSeed + 1)}, {}});
  }
  return samples;
}

}  // namespace

const OpDef softmax_backward_op{.name = "softmax_backward",
                                .formula = "y (dy - sum(dy y)), over the last axis",
                                .kind = OpKind::reduce,
                                .precision = &kExactInEveryType,
                                .flops_per_element = 4,
                                .infer = infer_backward,
                                .compose = softmax_backward_compose,
                                .cpu = backward_cpu<&kernels::SoftmaxRows::softmax_backward>,
                                .streams = {.inputs = 0b11, .outputs = 1},
                                .samples = backward_samples<150>};

const OpDef log_softmax_backward_op{
    .name = "log_softmax_backward",
    .formula = "dy - exp(y) sum(dy), over the last axis",
    .kind = OpKind::reduce,
    .precision = &kExactInEveryType,
    .flops_per_element = 4,
    .infer = infer_backward,
    .compose = log_softmax_backward_compose,
    .cpu = backward_cpu<&kernels::SoftmaxRows::log_softmax_backward>,
    .streams = {.inputs = 0b11, .outputs = 1},
    .samples = backward_samples<152>};

}  // namespace brrr
