#include "brrr/compiler/fp8/fp8_scale.h"

#include "brrr/compiler/pass_state.h"
#include "brrr/ops/op_list.h"

namespace brrr::compiler {
namespace {

double largest_of(DType format) { return format == DType::f8e4m3 ? 448 : 57344; }

std::string name_of(DType format, std::string_view what) {
  return join_text("fp8.", format == DType::f8e4m3 ? "e4m3" : "e5m2", what);
}

Attrs rows_attrs(int64_t axis, int64_t start, int64_t stop) {
  return {{"axis", axis}, {"start", start}, {"stop", stop}, {"step", int64_t{1}}};
}

}  // namespace

void Fp8Scale::open(Format& format) {
  if (format.scales.valid()) return;
  const TensorType one_row{.shape = {1}};
  if (around_) {
    format.scales = ports_->give(name_of(format.dtype, ".scale"), one_row, [this, &format] {
      return around_->scales_of_body(around_->format_of(format.dtype), format.rows);
    });
    return;
  }
  format.history = to_.graph.add_value({.shape = {1, steps_}});
  format.scales = to_.graph.add_value(one_row);
}

// The three values that have a row an operand grow as operands come.
int64_t Fp8Scale::add_rows(Format& format, int64_t rows) {
  const int64_t first = format.rows;
  format.rows += rows;
  for (ValueId id : {format.scales, format.inverses, format.history}) {
    if (id.valid()) to_.graph.values[id.index()].type.shape[0] = format.rows;
  }
  return first;
}

Fp8Scale::Operand Fp8Scale::quantize(ValueId x, DType dtype) {
  Format& format = format_of(dtype);
  open(format);
  if (!format.inverses.valid()) format.inverses = to_.add(reciprocal_op, {format.scales});
  const Attrs row{{"axis", int64_t{0}}, {"index", add_rows(format, 1)}};
  format.amax.push_back(to_.cast(to_.reduce(max_op, to_.add(abs_op, {x})), DType::f32));
  const ValueId scaled =
      to_.add(mul_op, {to_.cast(x, DType::f32), to_.add(select_op, {format.scales}, row)});
  return {to_.cast(scaled, dtype), to_.add(select_op, {format.inverses}, row)};
}

ValueId Fp8Scale::scales_of_body(Format& format, int64_t rows) {
  open(format);
  const int64_t first = add_rows(format, rows);
  return to_.add(slice_op, {format.scales}, rows_attrs(0, first, first + rows));
}

// [rows], in their order.
ValueId Fp8Scale::stacked_amax(const Format& format) {
  const Attrs first{{"axis", int64_t{0}}};
  ValueIds parts;
  for (ValueId id : format.amax)
    parts.push_back(to_.type(id).shape.empty() ? to_.add(unsqueeze_op, {id}, first) : id);
  return to_.add(concat_op, parts, first);
}

void Fp8Scale::finish() {
  for (Format* format : {&e4m3_, &e5m2_}) {
    if (format->scales.valid()) finish_format(*format);
  }
}

void Fp8Scale::finish_format(Format& format) {
  const ValueId amax = stacked_amax(format);
  if (!around_) return finish_states(format, amax);
  ports_->join_largest(name_of(format.dtype, ".amax"), amax, [this, &format](ValueId of_body) {
    around_->format_of(format.dtype).amax.push_back(of_body);
  });
}

// A largest magnitude that is infinite or NaN says nothing about the next step, and one of 0 has no scale.
void Fp8Scale::finish_states(Format& format, ValueId amax) {
  const ValueId newest = to_.add(where_op, {to_.add(isfinite_op, {amax}), amax, to_.number(0)});
  const ValueId column = to_.add(unsqueeze_op, {newest}, {{"axis", int64_t{1}}});
  const ValueId older = to_.add(slice_op, {format.history}, rows_attrs(1, 0, steps_ - 1));
  const ValueId history = to_.add(concat_op, {column, older}, {{"axis", int64_t{1}}});
  const ValueId largest = to_.add(max_op, {history}, {{"axes", Axes{1}}, {"keep_dims", false}});
  const ValueId fitting = to_.add(div_op, {to_.number(largest_of(format.dtype)), largest});
  constexpr double kTiny = 1e-30;  // below it the scale would leave f32
  const ValueId scales = to_.add(
      where_op, {to_.add(greater_op, {largest, to_.number(kTiny)}), fitting, format.scales});
  const auto add_state = [&](const char* what, ValueId before, ValueId after, double initial) {
    const AddedStates::Named& state =
        states_.named(name_of(format.dtype, what), to_.type(before), initial, to_.device());
    to_.graph.states.push_back(
        {.name = state.name, .before = before, .after = after, .tensor = state.tensor});
  };
  add_state(".amax", format.history, history, 0);
  add_state(".scale", format.scales, scales, 1);
}

}  // namespace brrr::compiler
