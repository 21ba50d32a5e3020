// In which forms values are read: casts, low copies of states, 8 bits, and gradients with and without the scale.
#include <algorithm>

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/precision/precision_rewriter.h"
#include "brrr/ops/op_list.h"

namespace brrr::compiler {
namespace {

// The part of the step that makes a value: of a result of a repeat, the part of its body that does.
Phase phase_of(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (!value.node.valid()) return Phase::forward;
  const Node& maker = graph.node(value.node);
  if (!maker.body) return maker.phase;
  return phase_of(*maker.body, maker.body->states[static_cast<size_t>(value.output)].after);
}

}  // namespace

PrecisionRewriter::Form PrecisionRewriter::form_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return Form::bf16;
    case DType::f16: return Form::f16;
    default: return Form::traced;
  }
}

ValueId PrecisionRewriter::give(ValueId id) {
  return forms_[{id, Form::traced}] = to_.graph.add_value(from_.type(id));
}

// `node` reads `id`: scaled where the walk starts, and at its own size where the update takes over. A sum of
// gradients over iterations takes over behind the last one.
ValueId PrecisionRewriter::read(const Node& node, ValueId id, Form form) {
  if (loss_scale_.is_on() && node.phase == Phase::backward && is_seed(id))
    return scaled_seed(id, form);
  if (loss_scale_.is_on() && node.phase == Phase::update && flow_.is_gradient(id) &&
      !scaled_sums_.count(node.outputs[0]))
    return is_f32(from_, id) ? to_form(scaled_down(id), form) : scaled_down(id);
  return get(id, form);
}

ValueId PrecisionRewriter::get(ValueId id, Form form) {
  if (!is_f32(from_, id)) form = Form::traced;
  const auto found = forms_.find({id, form});
  if (found != forms_.end()) return found->second;
  const NodeId maker = from_.value(id).node;
  const Node* node = maker.valid() ? &from_.node(maker) : nullptr;
  const ValueId made = node && node->op->view ? make_view(*node, form) : make_form(id, node, form);
  return forms_[{id, form}] = made;
}

ValueId PrecisionRewriter::make_view(const Node& node, Form form) {
  const ValueId source = read(node, node.inputs[0], form);
  return to_.add(*node.op, {source}, node.attrs);
}

ValueId PrecisionRewriter::make_form(ValueId id, const Node* maker, Form form) {
  const Form stored = stored_[id.index()];
  if (form == Form::bf16 || form == Form::f16) {
    const DType dtype = form == Form::bf16 ? DType::bf16 : DType::f16;
    if (const ValueId given = is_body() ? cast_outside(id, form) : ValueId(); given.valid())
      return given;
    const int state = is_body() ? -1 : state_of(id);
    if (state >= 0 && !is_written_forward(state)) return low_copy(state, dtype);
    if (maker && maker->op->role == OpRole::full)
      return to_.add(full_op, {}, with_attr(maker->attrs, {"dtype", dtype}));
  }
  return to_form(get(id, form == Form::rounded_bf16 ? Form::bf16 : stored), form);
}

ValueId PrecisionRewriter::to_form(ValueId x, Form form) {
  switch (form) {
    case Form::bf16: return to_.cast(x, DType::bf16);
    case Form::f16: return to_.cast(x, DType::f16);
    case Form::tf32: return to_.add(to_tf32_op, {to_.cast(x, DType::f32)});
    case Form::traced:
    case Form::rounded_bf16: return to_.cast(x, DType::f32);
    case Form::e4m3:
    case Form::e5m2: break;
  }
  const Fp8Scale::Operand operand =
      fp8_.quantize(x, form == Form::e4m3 ? DType::f8e4m3 : DType::f8e5m2);
  fp8_inverse_[operand.value] = operand.inverse;
  return operand.value;
}

// ---- states ----

int PrecisionRewriter::state_of(ValueId id) const {
  for (size_t i = 0; i < from_.states.size(); ++i) {
    if (from_.states[i].before == id) return static_cast<int>(i);
  }
  return -1;
}

// A running statistic or a cache: its value at the start is not what it is cast from later.
bool PrecisionRewriter::is_written_forward(int state) const {
  const StateSlot& slot = from_.states[static_cast<size_t>(state)];
  return slot.is_written() && from_.value(slot.after).node.valid() &&
         phase_of(from_, slot.after) == Phase::forward;
}

ValueId PrecisionRewriter::low_copy(int state, DType dtype) {
  const StateSlot& master = from_.states[static_cast<size_t>(state)];
  const ValueId value =
      to_.graph.add_value({.shape = from_.type(master.before).shape, .dtype = dtype});
  to_.graph.states.push_back({.name = join_text(master.name, ".", to_text(dtype)),
                              .before = value,
                              .after = value,
                              .tensor = master.tensor.defined()
                                            ? options_.states->copy_of(master.tensor, dtype)
                                            : Tensor(),
                              .copy_of = state});
  return value;
}

// ---- the loss scale ----

bool PrecisionRewriter::is_seed(ValueId id) const {
  return std::find(from_.seeds.begin(), from_.seeds.end(), id) != from_.seeds.end();
}

ValueId PrecisionRewriter::scaled_seed(ValueId id, Form form) {
  ValueId& scaled = scaled_seeds_[id];
  if (!scaled.valid()) scaled = loss_scale_.scale_up(get(id, Form::traced));
  return is_f32(from_, id) ? to_form(scaled, form) : scaled;
}

// A view of a gradient is a view of the gradient scaled down, so that each is scaled once.
ValueId PrecisionRewriter::scaled_down(ValueId id) {
  const auto found = scaled_down_.find(id);
  if (found != scaled_down_.end()) return found->second;
  const Node& maker = from_.node(from_.value(id).node);
  const bool through_view = maker.op->view && flow_.is_gradient(maker.inputs[0]);
  const ValueId made = through_view
                           ? to_.add(*maker.op, {scaled_down(maker.inputs[0])}, maker.attrs)
                           : loss_scale_.scale_down(get(id, Form::traced));
  return scaled_down_[id] = made;
}

// Outputs and states have the types that they were traced in.
ValueId PrecisionRewriter::final_value(ValueId id) {
  return loss_scale_.is_on() && flow_.is_gradient(id) ? scaled_down(id) : get(id, Form::traced);
}

}  // namespace brrr::compiler
