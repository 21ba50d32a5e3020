// The gradient of attention as an op of its own, so that it has a kernel. It has no gradient rule: where
// one is wanted, its composition is recorded and differentiated.
#include <limits>

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/attention/attention_cpu.h"
#include "brrr/ops/attention/attention_scores.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

// Inputs: q, k, v, out, logsumexp, and the gradients of the last two; then documents or lengths.
TensorTypes infer_attention_backward(const InferCall& call) {
  const kernels::AttentionSizes sizes = check_attention(call, 7);
  const Shape rows{sizes.batch, sizes.heads, sizes.queries};
  Shape out = rows;
  out.push_back(sizes.value_dim);
  for (int i : {3, 5}) {
    check(call.shape(i) == out && call.dtype(i) == call.dtype(0), "attention_backward: operand ", i,
          " is ", call.dtype(i), " ", call.shape(i), "; it must be ", call.dtype(0), " ", out);
  }
  for (int i : {4, 6}) {
    const bool fits =
        call.dtype(i) == call.dtype(0) || call.dtype(i) == kernels::score_dtype(call.dtype(0));
    check(call.shape(i) == rows && fits, "attention_backward: operand ", i, " is ", call.dtype(i),
          " ", call.shape(i), "; it must be ", kernels::score_dtype(call.dtype(0)), " ", rows);
  }
  return {{call.shape(0), call.dtype(0)},
          {call.shape(1), call.dtype(0)},
          {call.shape(2), call.dtype(0)}};
}

// Five products for every visible pair: the scores again, dP, dQ, dK and dV.
Cost attention_backward_cost(const CostCall& call) {
  const InferCall& in = call.call;
  const kernels::AttentionSizes sizes =
      kernels::attention_sizes(in.shape(0), in.shape(1), in.shape(2));
  Cost cost{.flops = 2 * kernels::visible_pairs(kernels::attention_rule(in.attrs), sizes) *
                     (3 * sizes.head_dim + 2 * sizes.value_dim)};
  for (int i = 0; i < in.size(); ++i)
    cost.bytes_read += storage_bytes(in.dtype(i), numel(in.shape(i)));
  for (const TensorType& output : call.outputs)
    cost.bytes_written += storage_bytes(output.dtype, numel(output.shape));
  return cost;
}

// With P = exp(S - logsumexp), the scores S = f(scale q k^T) and f the soft cap or nothing:
//   dV = P^T dO,   dS = P * (dO V^T - (sum(dO * O) - d logsumexp)) * f',
//   dQ = scale dS K,   dK = scale dS^T Q               (dK and dV summed over the heads of a group)
Tensors attention_backward_compose(const ComposeCall& call) {
  const Tensor &q = call.input(0), &k = call.input(1), &v = call.input(2);
  const kernels::AttentionSizes sizes = kernels::attention_sizes(q.shape(), k.shape(), v.shape());
  const kernels::AttentionRule rule = kernels::attention_rule(call.attrs);
  const DType wide = kernels::score_dtype(q.dtype());
  const auto split = [&](int i) { return split_heads(cast(call.input(i), wide), sizes); };
  const Tensor q5 = split(0), k5 = split(1), v5 = split(2), out = split(3), dout = split(5);
  const Tensor extra = call.inputs.size() > 7 ? call.input(7) : Tensor();
  const double hidden = -std::numeric_limits<double>::infinity();
  const Tensor scores = attention_scores(q5, k5, extra, rule);
  const Tensor total = split(4), shift = where(equal(total, hidden), 0.0, total);
  const Tensor probability = exp(scores - unsqueeze(shift, -1));
  const Tensor delta = sum(dout * out, {-1}) - split(6);
  Tensor dscores = probability * (matmul(dout, transpose(v5)) - unsqueeze(delta, -1));
  if (rule.soft_cap >
      0) {  // f = cap tanh(s / cap), f' = 1 - (f / cap)^2; hidden scores have dS = 0
    const Tensor capped = where(equal(scores, hidden), 0.0, scores);
    dscores = dscores * (1.0 - square(capped * (1 / rule.soft_cap)));
  }
  dscores = dscores * rule.scale;
  const auto merged = [&](const Tensor& grad, const Tensor& like) {
    return cast(reshape(grad, like.shape()), q.dtype());
  };
  return {merged(matmul(dscores, k5), q), merged(sum(matmul(transpose(dscores), q5), {2}), k),
          merged(sum(matmul(transpose(probability), dout), {2}), v)};
}

// The samples of attention with operands that a forward pass would give, and gradients for both results.
std::vector<Sample> attention_backward_samples() {
  NoGrad no_tape;
  std::vector<Sample> samples;
  uint32_t seed = 400;
  for (const Sample& forward : attention_op.samples()) {
    const Tensors results = call_op(attention_op, forward.inputs, forward.attrs);
    Tensors inputs{forward.inputs[0], forward.inputs[1], forward.inputs[2]};
    for (const Tensor& result : results) inputs.push_back(result);
    for (const Tensor& result : results)
      inputs.push_back(sample_values(result.shape(), seed++, -1, 1));
    if (forward.inputs.size() > 3) inputs.push_back(forward.inputs[3]);
    samples.push_back({inputs, forward.attrs});
  }
  return samples;
}

constexpr PrecisionRule kAttentionBackward{
    .take = Take::low,
    .factors = 0b100111,
    .wide_inputs = 0b1010000,
    .reason = "as attention; the logsumexp and its gradient are f32"};

}  // namespace

const OpDef attention_backward_op{.name = "attention_backward",
                                  .formula = "gradients of attention for q, k and v",
                                  .kind = OpKind::contraction,
                                  .role = OpRole::attention_backward,
                                  .precision = &kAttentionBackward,
                                  .infer = infer_attention_backward,
                                  .cost = attention_backward_cost,
                                  .compose = attention_backward_compose,
                                  .cpu = kernels::attention_backward_cpu,
                                  .workspace = kernels::attention_backward_workspace,
                                  .samples = attention_backward_samples};

}  // namespace brrr
