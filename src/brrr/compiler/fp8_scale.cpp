#include "brrr/compiler/fp8_scale.h"

#include "brrr/compiler/pass_state.h"
#include "brrr/ops/op_list.h"

namespace brrr {
namespace {

double largest_of(DType format) { return format == DType::f8e4m3 ? 448 : 57344; }

}  // namespace

// The three values that have a row an operand grow as operands come.
Fp8Scale::Format& Fp8Scale::open(DType dtype) {
  Format& format = dtype == DType::f8e4m3 ? e4m3_ : e5m2_;
  if (format.scales.valid()) return format;
  format.history = to_.graph.add_value({.shape = {1, steps_}});
  format.scales = to_.graph.add_value({.shape = {1}});
  format.inverses = to_.add(reciprocal_op, {format.scales});
  return format;
}

Fp8Scale::Operand Fp8Scale::quantize(ValueId x, DType dtype) {
  Format& format = open(dtype);
  const auto index = static_cast<int64_t>(format.amax.size());
  const Attrs row{{"axis", int64_t{0}}, {"index", index}};
  for (ValueId id : {format.scales, format.inverses, format.history})
    to_.graph.values[id.index()].type.shape[0] = index + 1;
  format.amax.push_back(to_.cast(to_.reduce(max_op, to_.add(abs_op, {x})), DType::f32));
  const ValueId scaled =
      to_.add(mul_op, {to_.cast(x, DType::f32), to_.add(select_op, {format.scales}, row)});
  return {to_.cast(scaled, dtype), to_.add(select_op, {format.inverses}, row)};
}

void Fp8Scale::finish() {
  if (e4m3_.scales.valid()) finish_format(e4m3_, DType::f8e4m3);
  if (e5m2_.scales.valid()) finish_format(e5m2_, DType::f8e5m2);
}

// A largest magnitude that is infinite or NaN says nothing about the next step, and one of 0 has no scale.
void Fp8Scale::finish_format(Format& format, DType dtype) {
  const ValueId stacked = to_.stack(format.amax);
  const ValueId newest =
      to_.add(where_op, {to_.add(isfinite_op, {stacked}), stacked, to_.number(0)});
  const ValueId column = to_.add(unsqueeze_op, {newest}, {{"axis", int64_t{1}}});
  const ValueId older = to_.add(
      slice_op, {format.history},
      {{"axis", int64_t{1}}, {"start", int64_t{0}}, {"stop", steps_ - 1}, {"step", int64_t{1}}});
  const ValueId history = to_.add(concat_op, {column, older}, {{"axis", int64_t{1}}});
  const ValueId largest = to_.add(max_op, {history}, {{"axes", Axes{1}}, {"keep_dims", false}});
  const ValueId fitting = to_.add(div_op, {to_.number(largest_of(dtype)), largest});
  constexpr double kTiny = 1e-30;  // below it the scale would leave f32
  const ValueId scales = to_.add(
      where_op, {to_.add(greater_op, {largest, to_.number(kTiny)}), fitting, format.scales});
  const std::string name = join_text("fp8.", dtype == DType::f8e4m3 ? "e4m3" : "e5m2");
  const auto add_state = [&](const char* what, ValueId before, ValueId after, double initial) {
    const AddedStates::Named& state =
        states_.named(name + what, to_.type(before), initial, device_);
    to_.graph.states.push_back(
        {.name = state.name, .before = before, .after = after, .tensor = state.tensor});
  };
  add_state(".amax", format.history, history, 0);
  add_state(".scale", format.scales, scales, 1);
}

}  // namespace brrr
