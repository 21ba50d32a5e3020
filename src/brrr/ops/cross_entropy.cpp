#include "brrr/ops/cross_entropy.h"

#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/ops/binary.h"
#include "brrr/ops/copy.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/index.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce.h"
#include "brrr/ops/row_tiles.h"
#include "brrr/ops/rows_cpu.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/unary.h"
#include "brrr/ops/views.h"

namespace brrr {
namespace {

DType loss_dtype(DType logits) { return logits == DType::f64 ? DType::f64 : DType::f32; }

// Outputs: the loss of each row, and the logsumexp of its logits, which the gradient uses.
TensorTypes infer_cross_entropy(const InferCall& call) {
  const Shape &logits = call.shape(0), &targets = call.shape(1);
  check(logits.size() == 2 && targets.size() == 1 && logits[0] == targets[0],
        "cross_entropy: logits ", logits, " and targets ", targets,
        " must be [rows, classes] and [rows]");
  check(is_integer(call.dtype(1)), "cross_entropy: targets must be integers, not ", call.dtype(1),
        "; cast them to i64");
  check(logits[1] > 0 || logits[0] == 0, "cross_entropy: logits ", logits,
        " have no classes to choose from");
  require_dtype(call, call.dtype(0));
  const TensorType row{{logits[0]}, loss_dtype(call.dtype(0))};
  return {row, row};
}

Tensors cross_entropy_compose(const ComposeCall& call) {
  const Tensor logits = cast(call.input(0), loss_dtype(call.input(0).dtype()));
  const Tensor total = logsumexp(logits, {-1});
  const Tensor chosen =
      squeeze(gather(logits, -1, unsqueeze(cast(call.input(1), DType::i64), -1)), -1);
  return {total - chosen, total};
}

// d loss / d logits = softmax - onehot(target);  d logsumexp / d logits = softmax
Tensors cross_entropy_grad(const GradCall& call) {
  const Tensor &logits = call.input(0), &targets = call.input(1), &total = call.output(1);
  const Tensor probability = exp(cast(logits, total.dtype()) - unsqueeze(total, -1));
  const Tensor classes =
      arange(0, static_cast<double>(logits.dim(-1)), 1, {DType::i64, logits.device()});
  Tensor grad = zeros(logits.shape(), {total.dtype(), logits.device()});
  if (call.output_grad(0).defined()) {
    const Tensor is_target = equal(classes, unsqueeze(targets, -1));
    grad = where(is_target, probability - 1.0, probability) * unsqueeze(call.output_grad(0), -1);
  }
  if (call.output_grad(1).defined()) grad = grad + probability * unsqueeze(call.output_grad(1), -1);
  return {cast(grad, logits.dtype()), Tensor()};
}

// Before anything is written: every target must name a class.
std::vector<int64_t> read_targets(const Operand& targets, int64_t classes) {
  std::vector<int64_t> values(static_cast<size_t>(targets.count()));
  load_elements(targets.dtype, targets.base, targets.layout->offset, targets.layout->strides[0],
                targets.count(), ComputeType::i64, values.data());
  for (size_t row = 0; row < values.size(); ++row) {
    check(values[row] >= 0 && values[row] < classes, "cross_entropy: target ", values[row],
          " at row ", row, " is out of range; there are ", classes, " classes, 0 to ", classes - 1);
  }
  return values;
}

void cross_entropy_cpu(const KernelCall& call) {
  const Rows logits(call.input(0));
  const std::vector<int64_t> targets = read_targets(call.input(1), logits.cols());
  const ComputeType type = compute_type(call.output(0).dtype);
  const RowKernels kernels = find_row_kernels(type);
  const int64_t cols = logits.cols();
  for_each_row(call.pool, logits.rows(), cols, 2, [&](int64_t row, double* buffer) {
    void *values = buffer, *exps = buffer + cols;
    logits.read(row, type, values);
    const double largest = kernels.max(values, cols), shift = std::isfinite(largest) ? largest : 0;
    kernels.exp_shifted(values, shift, exps, cols);
    const double total = std::log(kernels.sum(exps, cols)) + shift;
    const auto target = static_cast<size_t>(targets[static_cast<size_t>(row)]);
    const double chosen = type == ComputeType::f64
                              ? buffer[target]
                              : static_cast<double>(static_cast<float*>(values)[target]);
    const double results[] = {total - chosen, total};
    for (int i : {0, 1}) {
      const Operand& output = call.output(i);
      store_elements(ComputeType::f64, &results[i], output.dtype, output.base,
                     output.layout->offset + row, 1, 1);
    }
  });
}

std::vector<Sample> cross_entropy_samples() {
  std::vector<Sample> samples;
  for (const Shape& shape :
       {Shape{1, 1}, Shape{4, 3}, Shape{0, 5}, Shape{33, 17}, Shape{40, 1300}}) {
    samples.push_back(
        {{sample_values(shape, 130, -3, 3), sample_indices({shape[0]}, 131, shape[1])}, {}});
  }
  return samples;
}

}  // namespace

const OpDef cross_entropy_op{
    .name = "cross_entropy",
    .formula = "logsumexp(logits) - logits[target]",
    .kind = OpKind::reduce,
    .flops_per_element = 1,
    .infer = infer_cross_entropy,
    .cost =
        [](const CostCall& call) {
          const Shape& logits = call.call.shape(0);
          return Cost{.flops = 4 * numel(logits),
                      .bytes_read = storage_bytes(call.call.dtype(0), numel(logits)) +
                                    storage_bytes(call.call.dtype(1), logits[0]),
                      .bytes_written = 2 * storage_bytes(call.outputs[0].dtype, logits[0])};
        },
    .grad = cross_entropy_grad,
    .grad_reads = {.inputs = 0b11, .outputs = 0b10},
    .compose = cross_entropy_compose,
    .cpu = cross_entropy_cpu,
    .samples = cross_entropy_samples};

Tensor cross_entropy_each(const Tensor& logits, const Tensor& targets) {
  check(logits.rank() == targets.rank() + 1, "cross_entropy: logits ", logits.shape(),
        " need one axis more than targets ", targets.shape(), ": the classes");
  const Tensor rows = reshape(logits, {targets.numel(), logits.dim(-1)});
  return reshape(call_one(cross_entropy_op, {rows, reshape(targets, {targets.numel()})}),
                 targets.shape());
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets) {
  return mean(cross_entropy_each(logits, targets));
}

}  // namespace brrr
