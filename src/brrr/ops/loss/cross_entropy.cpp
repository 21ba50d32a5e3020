#include "brrr/ops/loss/cross_entropy.h"

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/rows/rows_cpu.h"
#include "brrr/kernels/cpu/rows/softmax_rows.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/loss/cross_entropy_call.h"
#include "brrr/ops/loss/loss_weights.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

// Outputs: the loss of each row, and the logsumexp of its logits, which the gradient uses; both are 0
// where the row is ignored.
TensorTypes infer_cross_entropy(const InferCall& call) {
  require_rows(call, 0, 1);
  const TensorType row{{call.shape(0)[0]}, loss_dtype(call.dtype(0))};
  return {row, row};
}

// The logits l of the definition: f32 at least, without filling, 0 in rows that do not count.
Tensor capped_logits(const Tensor& rows, const Tensor& counted,
                     const CrossEntropyOptions& options) {
  const Tensor classes = slice(rows, -1, {0, class_count(options, rows.dim(-1))});
  const Tensor logits = where(unsqueeze(counted, -1), cast(classes, loss_dtype(rows.dtype())), 0);
  if (options.soft_cap == 0) return logits;
  return options.soft_cap * tanh(logits / options.soft_cap);
}

Tensors cross_entropy_compose(const ComposeCall& call) {
  const CrossEntropyOptions options = options_of(call.attrs);
  const Tensor counted = counted_rows(call.input(1), options);
  // Zeros in place of ignored logits: whatever these were, NaN too, must not reach a gradient.
  const Tensor logits = capped_logits(call.input(0), counted, options);
  const Tensor targets = where(counted, cast(call.input(1), DType::i64), 0);
  const Tensor total = logsumexp(logits, {-1});
  const Tensor chosen = squeeze(gather(logits, -1, unsqueeze(targets, -1)), -1);
  Tensor loss = total - (1 - options.label_smoothing) * chosen;
  if (options.label_smoothing != 0) loss = loss - options.label_smoothing * mean(logits, {-1});
  if (options.z_loss != 0) loss = loss + options.z_loss * square(total);
  return {where(counted, loss, 0), where(counted, total, 0)};
}

Tensors cross_entropy_grad(const GradCall& call) {
  const Tensor &logits = call.input(0), &targets = call.input(1), &total = call.output(1);
  Tensor dloss = call.output_grad(0);
  const Tensor& dtotal = call.output_grad(1);
  if (!dloss.defined()) dloss = zeros(total.shape(), {total.dtype(), dtotal.device()});
  const Tensor inputs[] = {logits, targets, total, dloss, dtotal};
  const std::span<const Tensor> all(inputs);
  return {call_op(cross_entropy_backward_op, all.first(dtotal.defined() ? 5 : 4), call.attrs)[0],
          Tensor()};
}

double loss_of(const kernels::LogitTotals& totals, const CrossEntropyOptions& options,
               int64_t classes) {
  double loss = totals.logsumexp - (1 - options.label_smoothing) * totals.target;
  if (options.label_smoothing != 0)
    loss -= options.label_smoothing * (totals.sum / static_cast<double>(classes));
  return loss + options.z_loss * totals.logsumexp * totals.logsumexp;
}

void cross_entropy_cpu(const KernelCall& call) {
  const kernels::Rows logits(call.input(0));
  const CrossEntropyOptions options = options_of(call.attrs);
  const int64_t cols = logits.cols(), classes = class_count(options, cols);
  const std::vector<int64_t> targets = read_targets(call.input(1), classes, options);
  const ComputeType type = compute_type(call.output(0).dtype);
  const kernels::CrossEntropyRows kernels = kernels::find_cross_entropy_rows(type);
  const int buffers = logits.is_direct(type) ? 0 : 1;
  kernels::for_each_row(call.pool, logits.rows(), cols, buffers, [&](int64_t row, double* buffer) {
    double results[] = {0, 0};
    const int64_t target = targets[static_cast<size_t>(row)];
    if (target >= 0) {
      const kernels::LogitTotals totals =
          kernels.forward({.logits = logits.view(row, type, buffer),
                           .count = classes,
                           .target = target,
                           .soft_cap = options.soft_cap,
                           .wants_sum = options.label_smoothing != 0});
      results[0] = loss_of(totals, options, classes);
      results[1] = totals.logsumexp;
    }
    for (int i : {0, 1}) {
      const Operand& output = call.output(i);
      kernels::store_elements(ComputeType::f64, &results[i], output.dtype, output.base,
                              output.layout->offset + row, 1, 1);
    }
  });
}

Cost cross_entropy_cost(const CostCall& call) {
  const Shape& logits = call.call.shape(0);
  return {.flops = 4 * numel(logits),
          .bytes_read = storage_bytes(call.call.dtype(0), numel(logits)) +
                        storage_bytes(call.call.dtype(1), logits[0]),
          .bytes_written = 2 * storage_bytes(call.outputs[0].dtype, logits[0])};
}

Tensor row_weights(const Tensor& logits, const Tensor& targets,
                   const CrossEntropyOptions& options) {
  const TensorType classes{{class_count(options, logits.dim(-1))}, logits.dtype()};
  return target_weights(options.class_weights, targets, options.ignore_index, classes,
                        "cross_entropy");
}

// w[target] ((1 - s) (t - l[target]) + z t^2) + s / classes * sum_c w[c] (t - l[c])
// The op gives t - l[target] and t of each row.
Tensor weighted_rows(const Tensor& rows, const Tensor& targets,
                     const CrossEntropyOptions& options) {
  check_bounds(options, "cross_entropy");
  const Tensor weights = row_weights(rows, targets, options);
  const double smoothing = options.label_smoothing;
  // Two gradients meet in smoothed logits: they are added in f32 and rounded once.
  const Tensor logits = smoothing == 0 ? rows : cast(rows, loss_dtype(rows.dtype()));
  CrossEntropyOptions plain{.ignore_index = options.ignore_index, .soft_cap = options.soft_cap};
  plain.classes = options.classes;
  const Tensors results = call_op(cross_entropy_op, Tensors{logits, targets}, to_attrs(plain));
  const Tensor &nll = results[0], &total = results[1];
  Tensor loss = smoothing == 0 ? nll : (1 - smoothing) * nll;
  if (options.z_loss != 0) loss = loss + options.z_loss * square(total);
  loss = where(equal(weights, 0), 0, weights * loss);
  if (smoothing == 0) return loss;
  const Tensor counted = counted_rows(targets, options);
  const Tensor of_class = cast(options.class_weights, total.dtype());
  const Tensor apart = unsqueeze(total, -1) - capped_logits(logits, counted, options);
  const double share = smoothing / static_cast<double>(of_class.numel());
  return loss + share * where(counted, sum(of_class * apart, {-1}), 0);
}

std::vector<Sample> cross_entropy_samples() {
  std::vector<Sample> samples;
  for (const CrossEntropySample& sample : cross_entropy_cases())
    samples.push_back({{sample.logits, sample.targets}, sample.attrs});
  return samples;
}

constexpr PrecisionRule kCrossEntropy{
    .take = Take::stored, .reason = "f32 inside and f32 losses; logits as they are stored"};

}  // namespace

const OpDef cross_entropy_op{.name = "cross_entropy",
                             .formula = "logsumexp(logits) - logits[target]",
                             .kind = OpKind::reduce,
                             .role = OpRole::cross_entropy,
                             .precision = &kCrossEntropy,
                             .infer = infer_cross_entropy,
                             .cost = cross_entropy_cost,
                             .grad = cross_entropy_grad,
                             .grad_reads = {.inputs = 0b11, .outputs = 0b10},
                             .compose = cross_entropy_compose,
                             .cpu = cross_entropy_cpu,
                             .samples = cross_entropy_samples};

Tensor cross_entropy_each(const Tensor& logits, const Tensor& targets,
                          const CrossEntropyOptions& options) {
  check(logits.rank() == targets.rank() + 1, "cross_entropy: logits ", logits.shape(),
        " need one axis more than targets ", targets.shape(), ": the classes");
  const Tensor rows = reshape(logits, {targets.numel(), logits.dim(-1)});
  const Tensor flat = reshape(targets, {targets.numel()});
  const Tensor losses = options.class_weights.defined()
                            ? weighted_rows(rows, flat, options)
                            : call_one(cross_entropy_op, {rows, flat}, to_attrs(options));
  return reshape(losses, targets.shape());
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options) {
  const Tensor losses = cross_entropy_each(logits, targets, options);
  if (options.class_weights.defined())
    return weighted_mean(losses, row_weights(logits, targets, options));
  if (!options.ignore_index) return mean(losses);
  const Tensor counted = maximum(sum(counted_rows(targets, options)), 1);
  return sum(losses) / cast(counted, losses.dtype());
}

}  // namespace brrr
