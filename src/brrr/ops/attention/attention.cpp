#include "brrr/ops/attention/attention.h"

#include <cmath>
#include <limits>

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/attention/attention_cpu.h"
#include "brrr/ops/attention/attention_scores.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/norm/softmax.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

// Outputs: the values, and the logsumexp of each query's scores, from which the gradient makes the
// probabilities again.
TensorTypes attention_types(const kernels::AttentionSizes& sizes, DType dtype) {
  const Shape rows{sizes.batch, sizes.heads, sizes.queries};
  Shape out = rows;
  out.push_back(sizes.value_dim);
  return {{out, dtype}, {rows, kernels::score_dtype(dtype)}};
}
TensorTypes infer_attention(const InferCall& call) {
  return attention_types(check_attention(call, 3), call.dtype(0));
}

// The two products for every visible pair; what the softmax does to a pair does not grow with the head.
Cost attention_cost(const CostCall& call) {
  const InferCall& in = call.call;
  const kernels::AttentionSizes sizes =
      kernels::attention_sizes(in.shape(0), in.shape(1), in.shape(2));
  Cost cost{.flops = 2 * kernels::visible_pairs(kernels::attention_rule(in.attrs), sizes) *
                     (sizes.head_dim + sizes.value_dim)};
  for (int i = 0; i < in.size(); ++i)
    cost.bytes_read += storage_bytes(in.dtype(i), numel(in.shape(i)));
  for (const TensorType& output : call.outputs)
    cost.bytes_written += storage_bytes(output.dtype, numel(output.shape));
  return cost;
}

Tensors attention_compose(const ComposeCall& call) {
  const Tensor &q = call.input(0), &k = call.input(1), &v = call.input(2);
  const kernels::AttentionSizes sizes = kernels::attention_sizes(q.shape(), k.shape(), v.shape());
  const DType wide = kernels::score_dtype(q.dtype());
  const auto split = [&](const Tensor& x) { return split_heads(cast(x, wide), sizes); };
  const Tensor extra = call.inputs.size() > 3 ? call.input(3) : Tensor();
  const Tensor scores =
      attention_scores(split(q), split(k), extra, kernels::attention_rule(call.attrs));
  const double hidden = -std::numeric_limits<double>::infinity();
  const Shape rows{sizes.batch, sizes.heads, sizes.queries};
  Shape shape = rows;
  shape.push_back(sizes.value_dim);
  const Tensor total = scores.numel() == 0 ? full(rows, hidden, {wide, q.device()})
                                           : reshape(logsumexp(scores, {-1}), rows);
  const Tensor shift = split_heads(where(equal(total, hidden), 0.0, total), sizes);
  const Tensor out = matmul(exp(scores - unsqueeze(shift, -1)), split(v));
  return {cast(reshape(out, shape), q.dtype()), total};
}

Tensors attention_grad(const GradCall& call) {
  const Tensor &out = call.output(0), &total = call.output(1);
  const auto given = [](const Tensor& grad, const Tensor& like) {
    return grad.defined() ? grad : zeros(like.shape(), {like.dtype(), like.device()});
  };
  Tensors inputs{call.input(0),
                 call.input(1),
                 call.input(2),
                 out,
                 total,
                 given(call.output_grad(0), out),
                 given(call.output_grad(1), total)};
  const bool has_extra = call.inputs.size() > 3;
  if (has_extra) inputs.push_back(call.input(3));
  Tensors grads = call_op(attention_backward_op, inputs, call.attrs);
  if (has_extra) grads.push_back(Tensor());
  return grads;
}

// Inputs: q, k, v, the mask; then documents or lengths.
TensorTypes infer_masked_attention(const InferCall& call) {
  const kernels::AttentionSizes sizes = check_attention(call, 4);
  check_mask({call.shape(3), call.dtype(3)}, sizes, call.dtype(0), call.op.name);
  return attention_types(sizes, call.dtype(0));
}

// No kernel knows masks: the op runs as this, everywhere, and so does its gradient.
Tensors masked_attention_compose(const ComposeCall& call) {
  const Tensor &q = call.input(0), &k = call.input(1), &v = call.input(2);
  const kernels::AttentionSizes sizes = kernels::attention_sizes(q.shape(), k.shape(), v.shape());
  const DType wide = kernels::score_dtype(q.dtype());
  const auto split = [&](const Tensor& x) { return split_heads(cast(x, wide), sizes); };
  const Tensor extra = call.inputs.size() > 4 ? call.input(4) : Tensor();
  const VisibleSoftmax of_keys = softmax_visible(attention_scores(
      split(q), split(k), extra, kernels::attention_rule(call.attrs), call.input(3)));
  const TensorTypes types = attention_types(sizes, q.dtype());
  const Tensor out = matmul(of_keys.probabilities, split(v));
  return {cast(reshape(out, types[0].shape), q.dtype()),
          reshape(of_keys.logsumexp, types[1].shape)};
}

Attrs attrs_of(const AttentionOptions& options, int64_t head_dim) {
  const double natural = head_dim > 0 ? 1 / std::sqrt(static_cast<double>(head_dim)) : 1;
  Attrs attrs{{"scale", options.scale.value_or(natural)},
              {"causal", options.causal},
              {"window", options.window},
              {"soft_cap", options.soft_cap}};
  if (options.documents.defined()) attrs.add({"documents", true});
  if (options.lengths.defined()) attrs.add({"lengths", true});
  return attrs;
}

Tensor numbers(const std::vector<int64_t>& values, const Shape& shape) {
  return from_values(values, shape);
}

// Every width of head that tensor cores have a kernel for, and heads between them; more keys than a tile has.
template <typename Add>
void add_wide_heads(const Add& add) {
  add({1, 2, 19, 64}, {1, 1, 67, 64}, 64, {});
  add({1, 2, 21, 80}, {1, 1, 37, 80}, 80, {.causal = true});
  add({1, 1, 33, 96}, {1, 1, 33, 96}, 96, {.window = 11});
  add({1, 2, 18, 112}, {1, 2, 35, 112}, 112, {.causal = true, .soft_cap = 1.5});
  add({1, 1, 17, 128}, {1, 1, 70, 128}, 128, {.causal = true});
  add({2, 1, 9, 160}, {2, 1, 35, 160}, 160, {.causal = true, .lengths = numbers({35, 6}, {2})});
  add({1, 2, 5, 192}, {1, 1, 40, 192}, 192, {.scale = 0.2});
  add({1, 1, 18, 256}, {1, 1, 18, 256}, 256,
      {.causal = true,
       .documents = numbers({0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3}, {1, 18})});
}

// Every rule of visibility, heads that share keys, sizes that are no multiple of a vector, queries that
// see nothing, several blocks and tiles, and no elements at all.
std::vector<Sample> attention_samples() {
  std::vector<Sample> samples;
  uint32_t seed = 300;
  const auto add = [&](const Shape& q, const Shape& k, int64_t value_dim,
                       const AttentionOptions& options) {
    Shape v = k;
    v.back() = value_dim;
    Tensors inputs{sample_values(q, seed, -1, 1), sample_values(k, seed + 1, -1, 1),
                   sample_values(v, seed + 2, -1, 1)};
    if (options.documents.defined()) inputs.push_back(options.documents);
    if (options.lengths.defined()) inputs.push_back(options.lengths);
    samples.push_back({inputs, attrs_of(options, q.back())});
    seed += 3;
  };
  add({1, 1, 1, 1}, {1, 1, 1, 1}, 1, {});
  add({2, 2, 3, 5}, {2, 2, 4, 5}, 5, {});
  add({1, 2, 5, 4}, {1, 2, 5, 4}, 3, {.causal = true});
  add({2, 4, 3, 5}, {2, 2, 6, 5}, 6, {.scale = 0.7, .causal = true});  // queries continue the keys
  add({1, 2, 5, 3}, {1, 1, 3, 3}, 3, {.causal = true});  // the first two queries see nothing
  add({1, 2, 20, 17}, {1, 2, 20, 17}, 9, {.window = 3});
  add({1, 1, 4, 3}, {1, 1, 6, 3}, 3, {.soft_cap = 0.8});
  add({1, 2, 9, 8}, {1, 1, 9, 8}, 8, {.causal = true, .soft_cap = 1.5});
  add({2, 2, 6, 4}, {2, 1, 6, 4}, 4,
      {.causal = true, .documents = numbers({0, 0, 1, 1, 1, 2, 5, 7, 5, 7, 7, 5}, {2, 6})});
  add({2, 1, 5, 4}, {2, 1, 5, 4}, 4,
      {.documents = numbers({3, 3, 3, 3, 3, 1, 2, 1, 2, 2}, {2, 5})});
  add({3, 2, 2, 4}, {3, 1, 7, 4}, 4, {.lengths = numbers({7, 0, 3}, {3})});
  add({3, 2, 3, 4}, {3, 2, 9, 4}, 4, {.causal = true, .lengths = numbers({9, 2, 5}, {3})});
  add({2, 1, 1, 4}, {2, 1, 12, 4}, 4, {.window = 4, .lengths = numbers({12, 6}, {2})});
  add({0, 2, 3, 4}, {0, 2, 3, 4}, 4, {});
  add({1, 2, 0, 4}, {1, 2, 3, 4}, 4, {.causal = true});
  add({1, 2, 3, 4}, {1, 2, 0, 4}, 4, {});
  add({1, 1, 2, 0}, {1, 1, 3, 0}, 2, {});
  add({1, 2, 130, 24}, {1, 1, 150, 24}, 24, {.causal = true});
  add({2, 2, 90, 32}, {2, 2, 90, 32}, 16, {.window = 37});
  add_wide_heads(add);
  return samples;
}

// Bools and numbers, for every pair, every head or every key; some queries see nothing.
std::vector<Sample> masked_attention_samples() {
  std::vector<Sample> samples;
  uint32_t seed = 450;
  const auto add = [&](const Shape& q, const Shape& k, const Tensor& mask,
                       const AttentionOptions& options) {
    Tensors inputs{sample_values(q, seed, -1, 1), sample_values(k, seed + 1, -1, 1),
                   sample_values(k, seed + 2, -1, 1), mask};
    if (options.lengths.defined()) inputs.push_back(options.lengths);
    samples.push_back({inputs, attrs_of(options, q.back())});
    seed += 4;
  };
  const auto bools = [&](const Shape& shape) {
    return sample_values(shape, seed + 3, -1, 1) > 0.2;
  };
  const auto numbers_of = [&](const Shape& shape) { return sample_values(shape, seed + 3, -2, 2); };
  add({1, 1, 1, 1}, {1, 1, 1, 1}, bools({1, 1, 1, 1}), {});
  add({2, 4, 3, 5}, {2, 2, 6, 5}, bools({2, 4, 3, 6}), {});
  add({2, 4, 3, 5}, {2, 2, 6, 5}, numbers_of({4, 3, 6}), {.causal = true});
  add({1, 2, 5, 4}, {1, 2, 5, 4}, bools({5, 5}), {.window = 3, .soft_cap = 1.5});
  add({2, 2, 3, 4}, {2, 1, 5, 4}, numbers_of({2, 1, 1, 5}), {.lengths = numbers({5, 2}, {2})});
  add({1, 2, 3, 4}, {1, 2, 0, 4}, bools({3, 0}), {});
  add({2, 2, 60, 8}, {2, 2, 70, 8}, numbers_of({60, 70}), {});
  return samples;
}

constexpr PrecisionRule kAttention{
    .take = Take::low,
    .factors = 0b111,
    .reason = "products of low operands; scores, softmax and logsumexp are f32 inside"};

}  // namespace

const OpDef attention_op{.name = "attention",
                         .formula = "softmax(scale * q k^T over the visible keys) v",
                         .kind = OpKind::contraction,
                         .role = OpRole::attention,
                         .precision = &kAttention,
                         .infer = infer_attention,
                         .cost = attention_cost,
                         .grad = attention_grad,
                         .grad_reads = {.inputs = 0b1111, .outputs = 0b11},
                         .compose = attention_compose,
                         .cpu = kernels::attention_cpu,
                         .workspace = kernels::attention_workspace,
                         .samples = attention_samples};

const OpDef masked_attention_op{
    .name = "masked_attention",
    .formula = "softmax(scale * q k^T and mask over the visible keys) v",
    .kind = OpKind::contraction,
    .infer = infer_masked_attention,
    .compose = masked_attention_compose,
    .samples = masked_attention_samples};

AttentionResult attention_with_logsumexp(const Tensor& q, const Tensor& k, const Tensor& v,
                                         const AttentionOptions& options) {
  Tensors inputs{q, k, v};
  if (options.mask.defined()) inputs.push_back(options.mask);
  if (options.documents.defined()) inputs.push_back(options.documents);
  if (options.lengths.defined()) inputs.push_back(options.lengths);
  Tensors outputs = call_op(options.mask.defined() ? masked_attention_op : attention_op, inputs,
                            attrs_of(options, q.rank() > 0 ? q.dim(-1) : 1));
  return {std::move(outputs[0]), std::move(outputs[1])};
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options) {
  return attention_with_logsumexp(q, k, v, options).out;
}

Tensor attention_probabilities(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  const kernels::AttentionSizes sizes = kernels::attention_sizes(q.shape(), k.shape(), k.shape());
  const kernels::AttentionRule rule = kernels::attention_rule(attrs_of(options, sizes.head_dim));
  const Tensor extra = options.documents.defined() ? options.documents : options.lengths;
  if (options.mask.defined())
    check_mask(options.mask.type(), sizes, q.dtype(), "attention_probabilities");
  const Tensor scores =
      attention_scores(split_heads(q, sizes), split_heads(k, sizes), extra, rule, options.mask);
  const bool may_be_blind = options.mask.defined() || kernels::may_see_no_key(rule, sizes);
  return reshape(may_be_blind ? softmax_visible(scores).probabilities : softmax(scores),
                 {sizes.batch, sizes.heads, sizes.queries, sizes.keys});
}

Tensor mix_values(const Tensor& probabilities, const Tensor& v) {
  const int64_t kv_heads = v.dim(1), heads = probabilities.dim(1), queries = probabilities.dim(2);
  const Tensor grouped =
      reshape(probabilities, {v.dim(0), kv_heads, heads / kv_heads, queries, probabilities.dim(3)});
  return reshape(matmul(grouped, unsqueeze(v, 2)), {v.dim(0), heads, queries, v.dim(3)});
}

}  // namespace brrr
