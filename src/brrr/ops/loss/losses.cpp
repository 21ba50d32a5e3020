#include "brrr/ops/loss/losses.h"

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/index/index_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/loss/loss_weights.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

DType loss_dtype(DType input) { return input == DType::f64 ? DType::f64 : DType::f32; }

// ---- mse ---------------------------------------------------------------------------------------

// Broadcasting is refused: [n] against [n, 1] would compare every element with every other.
TensorTypes infer_mse(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  check(call.shape(0) == call.shape(1), "mse: prediction ", call.shape(0), " and target ",
        call.shape(1), " must have the same shape; reshape or expand one of them");
  check(call.dtype(0) == call.dtype(1), "mse: prediction is ", call.dtype(0), " and target ",
        call.dtype(1), "; cast one of them");
  return {{Shape{}, loss_dtype(call.dtype(0))}};
}

Tensors mse_compose(const ComposeCall& call) {
  const DType wide = loss_dtype(call.input(0).dtype());
  return {mean(square(cast(call.input(0), wide) - cast(call.input(1), wide)))};
}

std::vector<Sample> mse_samples() {
  std::vector<Sample> samples;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{4, 3}, Shape{30, 700}})
    samples.push_back({{sample_values(shape, 140), sample_values(shape, 141)}, {}});
  return samples;
}

// ---- nll ---------------------------------------------------------------------------------------

TensorTypes infer_nll(const InferCall& call) {
  const Shape &rows = call.shape(0), &targets = call.shape(1);
  require_dtype(call, call.dtype(0));
  check(rows.size() == 2 && targets.size() == 1 && rows[0] == targets[0], "nll: log-probabilities ",
        rows, " and targets ", targets, " must be [rows, classes] and [rows]");
  check(is_integer(call.dtype(1)) && !is_packed(call.dtype(1)),
        "nll: targets must be integers, not ", call.dtype(1), "; cast them to i64");
  check(rows[1] > 0 || rows[0] == 0, "nll: log-probabilities ", rows,
        " have no classes to choose from");
  return {{{rows[0]}, loss_dtype(call.dtype(0))}};
}

Tensors nll_compose(const ComposeCall& call) {
  const Tensor index = unsqueeze(cast(call.input(1), DType::i64), -1);
  const Tensor chosen = squeeze(gather(call.input(0), -1, index), -1);
  return {-cast(chosen, loss_dtype(call.input(0).dtype()))};
}

// dx = -dy at the place of the target, 0 elsewhere.
Tensors nll_grad(const GradCall& call) {
  const Tensor &x = call.input(0), &dy = call.output_grad(0);
  const Tensor index = unsqueeze(cast(call.input(1), DType::i64), -1);
  const Tensor source = -cast(unsqueeze(dy, -1), x.dtype());
  return {scatter_add(zeros(x.shape(), {x.dtype(), dy.device()}), -1, index, source), Tensor()};
}

Tensor nll_weights(const Tensor& log_probabilities, const Tensor& targets,
                   const NllOptions& options) {
  return target_weights(options.class_weights, targets, options.ignore_index,
                        log_probabilities.type(), "nll");
}

std::vector<Sample> nll_samples() {
  std::vector<Sample> samples;
  for (const Shape& shape :
       {Shape{1, 1}, Shape{4, 3}, Shape{0, 5}, Shape{33, 17}, Shape{40, 1300}}) {
    samples.push_back(
        {{sample_values(shape, 142, -5, 0), sample_indices({shape[0]}, 143, shape[1])}, {}});
  }
  return samples;
}

}  // namespace

const OpDef mse_op{.name = "mse",
                   .formula = "mean((prediction - target)^2)",
                   .kind = OpKind::reduce,
                   .infer = infer_mse,
                   .compose = mse_compose,
                   .samples = mse_samples};

const OpDef nll_op{.name = "nll",
                   .formula = "-log_probabilities[target]",
                   .kind = OpKind::gather,
                   .precision = &kWideResults,
                   .infer = infer_nll,
                   .grad = nll_grad,
                   .grad_reads = {.inputs = 0b10},
                   .compose = nll_compose,
                   .cpu = kernels::nll_cpu,
                   .samples = nll_samples};

Tensor mse(const Tensor& prediction, const Tensor& target) {
  return call_one(mse_op, {prediction, target});
}

Tensor nll_each(const Tensor& log_probabilities, const Tensor& targets, const NllOptions& options) {
  check(log_probabilities.rank() == targets.rank() + 1, "nll: log-probabilities ",
        log_probabilities.shape(), " need one axis more than targets ", targets.shape(),
        ": the classes");
  const std::optional<int64_t> ignored = options.ignore_index;
  const Tensor rows = reshape(log_probabilities, {targets.numel(), log_probabilities.dim(-1)});
  const Tensor chosen = ignored ? safe_targets(targets, ignored) : targets;
  const Tensor losses =
      reshape(call_one(nll_op, {rows, reshape(chosen, {targets.numel()})}), targets.shape());
  if (!options.class_weights.defined())
    return ignored ? where(counted_targets(targets, ignored), losses, 0) : losses;
  const Tensor weights = nll_weights(log_probabilities, targets, options);
  // Not 0 times a loss: one of inf would become NaN.
  return where(equal(weights, 0), 0, losses * weights);
}

Tensor nll(const Tensor& log_probabilities, const Tensor& targets, const NllOptions& options) {
  const Tensor losses = nll_each(log_probabilities, targets, options);
  if (!options.ignore_index && !options.class_weights.defined()) return mean(losses);
  return weighted_mean(losses,
                       options.class_weights.defined()
                           ? nll_weights(log_probabilities, targets, options)
                           : cast(counted_targets(targets, options.ignore_index), losses.dtype()));
}

}  // namespace brrr
