// Cross-entropy and its gradient in one op: logits are read once, and the gradient may be written over them. For programs
// in which the gradient of the losses is known before the losses are, such as that of their mean.
#include "brrr/graph/call.h"
#include "brrr/ops/loss/cross_entropy_call.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"

namespace brrr {
namespace {

// Inputs: logits, targets, and the gradient of each row's loss. Outputs: the losses, and the gradient of the logits.
TensorTypes infer_classifier(const InferCall& call) {
  require_rows(call, 0, 1);
  const Shape rows{call.shape(0)[0]};
  check(call.shape(2) == rows && is_float(call.dtype(2)), call.op.name, ": operand 2 is ",
        call.dtype(2), call.shape(2), "; it must be a float for each row of logits ",
        call.shape(0));
  return {{rows, loss_dtype(call.dtype(0))}, {call.shape(0), call.dtype(0)}};
}

Tensors classifier_compose(const ComposeCall& call) {
  const Tensor &logits = call.input(0), &targets = call.input(1);
  const Tensors forward =
      call_op(cross_entropy_op, std::vector<Tensor>{logits, targets}, call.attrs);
  const std::vector<Tensor> known{logits, targets, forward[1], call.input(2)};
  return {forward[0], call_op(cross_entropy_backward_op, known, call.attrs)[0]};
}

Cost classifier_cost(const CostCall& call) {
  const Shape& logits = call.call.shape(0);
  const int64_t bytes = storage_bytes(call.call.dtype(0), numel(logits));
  return {.flops = 8 * numel(logits),
          .bytes_read = bytes + storage_bytes(call.call.dtype(1), logits[0]) +
                        storage_bytes(call.call.dtype(2), logits[0]),
          .bytes_written = bytes + storage_bytes(call.outputs[0].dtype, logits[0])};
}

std::vector<Sample> classifier_samples() {
  std::vector<Sample> samples;
  for (const CrossEntropySample& c : cross_entropy_cases()) {
    samples.push_back({{c.logits, c.targets, sample_values({c.logits.dim(0)}, 135)}, c.attrs});
  }
  return samples;
}

constexpr PrecisionRule kClassifier{
    .take = Take::stored,
    .wide_inputs = 0b100,
    .reason = "f32 inside and f32 losses; logits as they are stored"};

}  // namespace

const OpDef classifier_op{.name = "classifier",
                          .formula = "cross_entropy, and its gradient for dloss",
                          .kind = OpKind::reduce,
                          .precision = &kClassifier,
                          .infer = infer_classifier,
                          .cost = classifier_cost,
                          .compose = classifier_compose,
                          .overwrites = {.input = 0, .output = 1},
                          .samples = classifier_samples};

}  // namespace brrr
