#include "brrr/ops/attention/rope.h"

#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/rows/rope_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

TensorTypes infer_table(const InferCall& call) {
  const Shape& positions = call.shape(0);
  check(call.dtype(0) == DType::i64 && (positions.size() == 1 || positions.size() == 2),
        "rope_table: positions are ", call.dtype(0), " of shape ", positions,
        "; they must be i64 [seq] or [batch, seq]");
  const double base = call.attrs.number("base");
  check(base > 0 && std::isfinite(base), "rope_table: base ", base, " must be positive");
  const int64_t pairs = call.attrs.integer("pairs");
  check(pairs >= 0, "rope_table: ", pairs, " pairs; use a number >= 0");
  const DType dtype = call.attrs.get<DType>("dtype");
  check(dtype == DType::f32 || dtype == DType::f64, "rope_table: ", dtype,
        " loses what the angles are; ask for f32 or f64");
  Shape shape = positions;
  shape.push_back(2);
  shape.push_back(pairs);
  return {{shape, dtype}};
}

Tensors table_compose(const ComposeCall& call) {
  const Tensor& positions = call.input(0);
  const int64_t pairs = call.attrs.integer("pairs");
  const Tensor frequencies =
      to(from_values(kernels::rope_frequencies(call.attrs.number("base"), pairs), {pairs}),
         positions.device());
  const Tensor angle = unsqueeze(cast(positions, DType::f64), -1) * frequencies;
  return {cast(stack({cos(angle), sin(angle)}, -2), call.attrs.get<DType>("dtype"))};
}

TensorTypes infer_rope(const InferCall& call) {
  const Shape &x = call.shape(0), &table = call.shape(1);
  check(x.size() == 4, "rope: x ", x,
        " must be [batch, heads, seq, head_dim]; unsqueeze or transpose it");
  const int64_t pairs = table.size() < 2 ? 0 : table.back();
  check(is_float(call.dtype(1)) &&
            (table == Shape{x[2], 2, pairs} || table == Shape{x[0], x[2], 2, pairs}),
        "rope: the table is ", call.dtype(1), " of shape ", table, " for x ", x,
        "; make it with rope_table of ", x[2], " positions, or of [", x[0], ", ", x[2], "]");
  check(2 * pairs <= x[3], "rope: ", pairs, " pairs are more than a head of ", x[3], " has");
  return {{x, call.dtype(0)}};
}

// (a, b) -> (a cos - b sin, b cos + a sin)
struct Turned {
  Tensor a, b;
};
Turned turn(const Tensor& a, const Tensor& b, const Tensor& cosine, const Tensor& sine) {
  return {a * cosine - b * sine, b * cosine + a * sine};
}

Tensors rope_compose(const ComposeCall& call) {
  const DType dtype = call.input(0).dtype(), wide = dtype == DType::f64 ? dtype : DType::f32;
  const Tensor x = cast(call.input(0), wide);
  Tensor table = cast(call.input(1), wide);
  if (table.rank() == 4) table = unsqueeze(table, 1);  // the same for all heads
  const int64_t pairs = table.dim(-1), rotary = 2 * pairs;
  const Tensor cosine = select(table, -2, 0), turn_by = select(table, -2, 1);
  const Tensor sine = call.attrs.flag("inverse") ? -turn_by : turn_by;
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

// The first and second elements of every pair that turns.
Turned pairs_of(const Tensor& x, int64_t pairs, bool interleaved) {
  if (!interleaved) return {slice(x, -1, {0, pairs}), slice(x, -1, {pairs, 2 * pairs})};
  return {slice(x, -1, {0, 2 * pairs, 2}), slice(x, -1, {1, 2 * pairs, 2})};
}

// d cos = a da' + b db' and d sin = a db' - b da', over all heads, and batches where they share the table
Tensor table_grad(const GradCall& call) {
  const Tensor& table = call.input(1);
  const int64_t pairs = table.dim(-1);
  const bool interleaved = call.attrs.flag("interleaved");
  const auto [a, b] = pairs_of(call.input(0), pairs, interleaved);
  const auto [da, db] = pairs_of(call.output_grad(0), pairs, interleaved);
  const Axes shared = table.rank() == 4 ? Axes{1} : Axes{0, 1};
  const Tensor sine = sum(a * db - b * da, shared);
  return stack({sum(a * da + b * db, shared), call.attrs.flag("inverse") ? -sine : sine}, -2);
}

// A rotation's transpose turns back.
Tensors rope_grad(const GradCall& call) {
  const Attrs back{{"interleaved", call.attrs.flag("interleaved")},
                   {"inverse", !call.attrs.flag("inverse")}};
  Tensors grads(2);
  if (call.wants(0)) grads[0] = call_one(rope_op, {call.output_grad(0), call.input(1)}, back);
  if (call.wants(1)) grads[1] = cast(table_grad(call), call.input(1).dtype());
  return grads;
}

Cost rope_cost(const CostCall& call) {
  const InferCall& in = call.call;
  const int64_t rows = numel(in.shape(0)) / std::max<int64_t>(1, in.shape(0).back());
  // Four products and two sums a pair.
  return {.flops = 6 * rows * in.shape(1).back(),
          .bytes_read = storage_bytes(in.dtype(0), numel(in.shape(0))) +
                        storage_bytes(in.dtype(1), numel(in.shape(1))),
          .bytes_written = storage_bytes(in.dtype(0), numel(in.shape(0)))};
}

Attrs table_attrs(int64_t pairs, double base, DType dtype) {
  return {{"base", base}, {"pairs", pairs}, {"dtype", dtype}};
}

std::vector<Sample> table_samples() {
  return {{{sample_indices({1}, 350, 10)}, table_attrs(1, 10000, DType::f32)},
          {{sample_indices({2, 5}, 351, 100000)}, table_attrs(5, 10000, DType::f32)},
          {{sample_indices({4}, 352, 1000)}, table_attrs(3, 0.5, DType::f64)},
          {{sample_indices({0}, 353, 5)}, table_attrs(4, 10000, DType::f32)},
          {{sample_indices({3}, 354, 5)}, table_attrs(0, 10000, DType::f32)},
          {{sample_indices({900}, 355, 4000)}, table_attrs(34, 500000, DType::f32)}};
}

// Tables of samples are any numbers: the op turns and stretches by what it is given.
std::vector<Sample> rope_samples() {
  std::vector<Sample> samples;
  uint32_t seed = 360;
  const auto add = [&](const Shape& x, const Shape& table, bool interleaved, bool inverse) {
    const Tensor values = sample_values(x, seed++), turns = sample_values(table, seed++, -1, 1);
    samples.push_back({{values, turns}, {{"interleaved", interleaved}, {"inverse", inverse}}});
  };
  for (bool interleaved : {false, true}) {
    add({1, 1, 1, 2}, {1, 2, 1}, interleaved, false);
    add({2, 3, 4, 6}, {4, 2, 3}, interleaved, false);
    add({2, 2, 5, 10}, {2, 5, 2, 5}, interleaved, true);
    add({1, 2, 3, 9}, {3, 2, 2}, interleaved, false);
    add({2, 1, 0, 4}, {0, 2, 2}, interleaved, false);
    add({2, 3, 150, 36}, {2, 150, 2, 17}, interleaved, false);
  }
  return samples;
}

}  // namespace

const OpDef rope_table_op{.name = "rope_table",
                          .formula = "cos t and sin t, t = position * base^(-pair / pairs)",
                          .kind = OpKind::other,
                          .dtypes = dtype_set(DType::i64),
                          .flops_per_element = 20,
                          .infer = infer_table,
                          .compose = table_compose,
                          .cpu = kernels::rope_table_cpu,
                          .samples = table_samples};

const OpDef rope_op{.name = "rope",
                    .formula = "(a, b) -> (a cos t - b sin t, b cos t + a sin t)",
                    .kind = OpKind::other,
                    .infer = infer_rope,
                    .cost = rope_cost,
                    .grad = rope_grad,
                    .grad_reads = {.inputs = 0b11},
                    .compose = rope_compose,
                    .cpu = kernels::rope_cpu,
                    .samples = rope_samples};

Tensor rope_table(const Tensor& positions, int64_t pairs, double base, DType dtype) {
  return call_one(rope_table_op, {positions}, table_attrs(pairs, base, dtype));
}

Tensor rope(const Tensor& x, const Tensor& where, const RopeOptions& options) {
  Tensor table = where;
  if (!is_float(where.dtype())) {
    const int64_t rotary =
        options.rotary_dim != 0 ? options.rotary_dim : (x.rank() > 0 ? x.dim(-1) : 0);
    check(rotary >= 0 && rotary % 2 == 0, "rope: rotary_dim ", rotary,
          " does not make pairs; use an even number up to the size of a head");
    table = rope_table(where, rotary / 2, options.base,
                       x.dtype() == DType::f64 ? DType::f64 : DType::f32);
  }
  return call_one(rope_op, {x, table},
                  {{"interleaved", options.interleaved}, {"inverse", options.inverse}});
}

}  // namespace brrr
