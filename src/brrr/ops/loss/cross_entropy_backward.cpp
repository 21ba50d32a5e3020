// The gradient of cross_entropy in one walk over the logits: read once, written once. It has no rule
// of its own: where gradients of gradients are wanted the composition is recorded instead.
#include "brrr/kernels/cpu/rows/rows_cpu.h"
#include "brrr/kernels/cpu/rows/softmax_rows.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/loss/cross_entropy_call.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/pad_roll.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

// Inputs: logits, targets, logsumexp and gradient of the loss of each row, and, where one arrived, the
// gradient of logsumexp.
TensorTypes infer_backward(const InferCall& call) {
  require_rows(call, 0, 1);
  const Shape& logits = call.shape(0);
  for (int i = 2; i < call.size(); ++i) {
    check(call.shape(i) == Shape{logits[0]} && is_float(call.dtype(i)), call.op.name, ": operand ",
          i, " is ", call.dtype(i), call.shape(i), "; it must be a float for each row of logits ",
          logits);
  }
  return {{logits, call.dtype(0)}};
}

// With p = exp(l - logsumexp), s = label_smoothing, both 0 and the target's 1 in `hit`:
//   d loss / d l = p (1 + 2 z logsumexp) - s / classes - (1 - s) hit,   d logsumexp / d l = p
//   d l / d logits = 1 - tanh(logits / cap)^2
Tensors backward_compose(const ComposeCall& call) {
  const CrossEntropyOptions options = options_of(call.attrs);
  const DType dtype = call.input(0).dtype(), wide = loss_dtype(dtype);
  const Tensor counted = unsqueeze(counted_rows(call.input(1), options), -1);
  const int64_t columns = call.input(0).dim(-1), valid = class_count(options, columns);
  const Tensor logits = where(counted, cast(slice(call.input(0), -1, {0, valid}), wide), 0);
  const auto column = [&](int i) { return unsqueeze(cast(call.input(i), wide), -1); };
  const Tensor total = column(2), dloss = column(3);
  const Tensor t = options.soft_cap != 0 ? tanh(logits / options.soft_cap) : Tensor();
  const Tensor p = exp((t.defined() ? options.soft_cap * t : logits) - total);
  const double classes = static_cast<double>(valid), s = options.label_smoothing;
  const Tensor ids = arange(0, classes, 1, {DType::i64, logits.device()});
  const Tensor hit = cast(equal(ids, unsqueeze(cast(call.input(1), DType::i64), -1)), wide);
  Tensor grad = dloss * (p * (1.0 + 2 * options.z_loss * total) - s / classes - (1 - s) * hit);
  if (call.inputs.size() > 4) grad = grad + column(4) * p;
  if (t.defined()) grad = grad * (1.0 - square(t));
  const Tensor counted_grad = cast(where(counted, grad, 0), dtype);
  return {valid == columns ? counted_grad : pad(counted_grad, {0, 0}, {0, columns - valid})};
}

std::vector<double> read_column(const Operand& operand) {
  std::vector<double> values(static_cast<size_t>(operand.count()));
  kernels::load_elements(operand.dtype, operand.base, operand.layout->offset,
                         operand.layout->strides[0], operand.count(), ComputeType::f64,
                         values.data());
  return values;
}

void backward_cpu(const KernelCall& call) {
  const kernels::Rows logits(call.input(0)), gradient(call.output(0));
  const CrossEntropyOptions options = options_of(call.attrs);
  const int64_t cols = logits.cols(), classes = class_count(options, cols);
  const std::vector<int64_t> targets = read_targets(call.input(1), classes, options);
  const std::vector<double> totals = read_column(call.input(2)), dloss = read_column(call.input(3));
  const std::vector<double> dtotal =
      call.inputs.size() > 4 ? read_column(call.input(4)) : std::vector<double>(dloss.size(), 0.0);
  const ComputeType type = compute_type(call.output(0).dtype);
  const kernels::CrossEntropyRows kernels = kernels::find_cross_entropy_rows(type);
  const bool in_place = logits.is_direct(type) && gradient.is_direct(type);
  const double s = options.label_smoothing;
  kernels::for_each_row(
      call.pool, logits.rows(), cols, in_place ? 0 : 2, [&](int64_t row, double* buffer) {
        const auto r = static_cast<size_t>(row);
        void* out = gradient.target(row, type, buffer + cols);
        const int64_t filled_from = targets[r] < 0 ? 0 : classes;
        std::fill_n(static_cast<std::byte*>(out) + filled_from * compute_bytes(type),
                    (cols - filled_from) * compute_bytes(type), std::byte{0});
        if (targets[r] >= 0) {
          kernels.backward(
              {.logits = logits.view(row, type, buffer),
               .gradient = out,
               .count = classes,
               .target = targets[r],
               .soft_cap = options.soft_cap,
               .logsumexp = totals[r],
               .probability = dloss[r] * (1 + 2 * options.z_loss * totals[r]) + dtotal[r],
               .share = dloss[r] * s / static_cast<double>(classes),
               .hit = dloss[r] * (1 - s),
               .store = gradient.store(type)});
        }
        gradient.deliver(row, type, out);
      });
}

std::vector<Sample> backward_samples() {
  std::vector<Sample> samples;
  for (const CrossEntropySample& c : cross_entropy_cases()) {
    const Shape rows{c.logits.dim(0)};
    Sample sample{{c.logits, c.targets, sample_values(rows, 132, 3, 4), sample_values(rows, 133)},
                  c.attrs};
    if (samples.size() % 2 == 1) sample.inputs.push_back(sample_values(rows, 134));
    samples.push_back(sample);
  }
  return samples;
}

constexpr PrecisionRule kCrossEntropyBackward{.take = Take::stored,
                                              .wide_inputs = 0b11100,
                                              .reason = "f32 inside; logits as they are stored"};

}  // namespace

const OpDef cross_entropy_backward_op{.name = "cross_entropy_backward",
                                      .formula = "dloss (softmax(logits) - onehot(target))",
                                      .kind = OpKind::reduce,
                                      .role = OpRole::cross_entropy_backward,
                                      .precision = &kCrossEntropyBackward,
                                      .flops_per_element = 4,
                                      .infer = infer_backward,
                                      .compose = backward_compose,
                                      .cpu = backward_cpu,
                                      // Logits are the largest values of a step.
                                      .overwrites = {.input = 0, .output = 0},
                                      .samples = backward_samples};

}  // namespace brrr
