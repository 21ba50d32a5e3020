#include "brrr/ops/rope.h"

#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/ops/binary.h"
#include "brrr/ops/copy.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/join.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/rope_cpu.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/unary.h"
#include "brrr/ops/views.h"

namespace brrr {
namespace {

TensorTypes infer_rope(const InferCall& call) {
  const Shape &x = call.shape(0), &positions = call.shape(1);
  check(x.size() == 4, "rope: x ", x,
        " must be [batch, heads, seq, head_dim]; unsqueeze or transpose it");
  check(call.dtype(1) == DType::i64 && (positions == Shape{x[2]} || positions == Shape{x[0], x[2]}),
        "rope: positions are ", call.dtype(1), " of shape ", positions, " for x ", x,
        "; they must be i64 [seq] = [", x[2], "] or [batch, seq] = [", x[0], ", ", x[2], "]");
  const int64_t rotary = call.attrs.integer("rotary_dim");
  check(rotary >= 0 && rotary % 2 == 0 && rotary <= x[3], "rope: rotary_dim ", rotary,
        " does not make pairs of a head of ", x[3], "; use an even number up to it");
  const double base = call.attrs.number("base");
  check(base > 0 && std::isfinite(base), "rope: base ", base, " must be positive");
  return infer_same(call);
}

// (a, b) -> (a cos - b sin, b cos + a sin)
struct Turned {
  Tensor a, b;
};
Turned turn(const Tensor& a, const Tensor& b, const Tensor& cosine, const Tensor& sine) {
  return {a * cosine - b * sine, b * cosine + a * sine};
}

Tensors rope_compose(const ComposeCall& call) {
  const Tensor& positions = call.input(1);
  const DType dtype = call.input(0).dtype(), wide = dtype == DType::f64 ? dtype : DType::f32;
  const Tensor x = cast(call.input(0), wide);
  const int64_t rotary = call.attrs.integer("rotary_dim"), pairs = rotary / 2;
  const Tensor frequencies =
      to(from_values(rope_frequencies(call.attrs.number("base"), pairs), {pairs}), x.device());
  Tensor angle = unsqueeze(cast(positions, DType::f64), -1) * frequencies;
  if (positions.rank() == 2) angle = unsqueeze(angle, 1);  // the same for all heads
  if (call.attrs.flag("inverse")) angle = -angle;
  const Tensor cosine = cast(cos(angle), wide), sine = cast(sin(angle), wide);
  const Tensor moving = slice(x, -1, {0, rotary}), rest = slice(x, -1, {rotary, x.dim(-1)});
  Tensor turned;
  if (call.attrs.flag("interleaved")) {
    Shape split = moving.shape();
    split.back() = pairs;
    split.push_back(2);
    const Tensor two = reshape(moving, split);
    const auto [a, b] = turn(select(two, -1, 0), select(two, -1, 1), cosine, sine);
    turned = reshape(stack({a, b}, -1), moving.shape());
  } else {
    const auto [a, b] =
        turn(slice(moving, -1, {0, pairs}), slice(moving, -1, {pairs, rotary}), cosine, sine);
    turned = concat({a, b}, -1);
  }
  return {cast(concat({turned, rest}, -1), dtype)};
}

// A rotation's transpose turns back.
Tensors rope_grad(const GradCall& call) {
  Attrs back;
  for (const Attr& attr : call.attrs)
    back.add(attr.name == "inverse" ? Attr{"inverse", !call.attrs.flag("inverse")} : attr);
  return {call_one(rope_op, {call.output_grad(0), call.input(1)}, back), Tensor()};
}

Cost rope_cost(const CostCall& call) {
  const InferCall& in = call.call;
  const int64_t rows = numel(in.shape(0)) / std::max<int64_t>(1, in.shape(0).back());
  // Four products and two sums a pair; the table of angles is shared by the heads and left out.
  return {.flops = 3 * rows * in.attrs.integer("rotary_dim"),
          .bytes_read = storage_bytes(in.dtype(0), numel(in.shape(0))) +
                        storage_bytes(in.dtype(1), numel(in.shape(1))),
          .bytes_written = storage_bytes(in.dtype(0), numel(in.shape(0)))};
}

Attrs attrs_of(const RopeOptions& options, int64_t head_dim) {
  return {{"base", options.base},
          {"rotary_dim", options.rotary_dim == 0 ? head_dim : options.rotary_dim},
          {"interleaved", options.interleaved},
          {"inverse", options.inverse}};
}

std::vector<Sample> rope_samples() {
  std::vector<Sample> samples;
  uint32_t seed = 360;
  const auto add = [&](const Shape& x, const Tensor& positions, const RopeOptions& options) {
    samples.push_back({{sample_values(x, seed++), positions}, attrs_of(options, x.back())});
  };
  const auto positions = [&](const Shape& shape, int64_t bound) {
    return sample_indices(shape, seed, bound);
  };
  for (bool interleaved : {false, true}) {
    add({1, 1, 1, 2}, positions({1}, 10), {.interleaved = interleaved});
    add({2, 3, 4, 6}, positions({4}, 100), {.interleaved = interleaved});
    add({2, 2, 5, 10}, positions({2, 5}, 100000), {.interleaved = interleaved, .inverse = true});
    add({1, 2, 3, 9}, positions({3}, 50), {.rotary_dim = 4, .interleaved = interleaved});
    add({1, 2, 3, 40}, positions({1, 3}, 9), {.base = 0.5, .interleaved = interleaved});
    add({2, 1, 0, 4}, positions({0}, 5), {.interleaved = interleaved});
    add({2, 3, 150, 36}, positions({2, 150}, 4000),
        {.base = 500000, .rotary_dim = 34, .interleaved = interleaved});
  }
  return samples;
}

}  // namespace

const OpDef rope_op{.name = "rope",
                    .formula =
                        "(a, b) -> (a cos t - b sin t, b cos t + a sin t), t = position * "
                        "base^(-pair / pairs)",
                    .kind = OpKind::other,
                    .infer = infer_rope,
                    .cost = rope_cost,
                    .grad = rope_grad,
                    .grad_reads = {.inputs = 0b10},
                    .compose = rope_compose,
                    .cpu = rope_cpu,
                    .samples = rope_samples};

Tensor rope(const Tensor& x, const Tensor& positions, const RopeOptions& options) {
  return call_one(rope_op, {x, positions}, attrs_of(options, x.rank() > 0 ? x.dim(-1) : 0));
}

}  // namespace brrr
