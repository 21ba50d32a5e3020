// The rewrite. Every f32 value of the old program exists in the new one in the forms that its readers
// take it in, each made once: as it is stored, and casts of that. Views are made for a form when it is
// asked for, over the same form of what they show, so that a tensor is cast once for all its views.
#include "brrr/compiler/precision.h"

#include <algorithm>
#include <map>

#include "brrr/compiler/fp8_scale.h"
#include "brrr/compiler/graph_builder.h"
#include "brrr/compiler/loss_scale.h"
#include "brrr/compiler/precision_flow.h"
#include "brrr/ops/op_list.h"

namespace brrr {
namespace {

enum class Form : uint8_t {
  traced,  // the type it was traced in
  bf16,
  f16,
  tf32,          // f32 without the bits that tf32 drops
  rounded_bf16,  // f32 that holds bf16 numbers
  e4m3,          // 8 bits, scaled
  e5m2
};

Form form_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return Form::bf16;
    case DType::f16: return Form::f16;
    default: return Form::traced;
  }
}

Device device_of(const Graph& graph) {
  for (const StateSlot& state : graph.states) {
    if (state.tensor.defined()) return state.tensor.device();
  }
  return Device::cpu();
}

class Rewriter {
 public:
  Rewriter(const Graph& graph, const PrecisionOptions& options)
      : from_(graph),
        options_(options),
        flow_(plan_precision(graph, options)),
        loss_scale_(to_, options, device_of(graph)),
        fp8_(to_, options, device_of(graph)),
        stored_(graph.values.size(), Form::traced) {
    to_.set_device(device_of(graph));
    check(!loss_scale_.is_on() || !flow_.mixes_gradients,
          "precision: ", flow_.mixes_gradients ? flow_.mixes_gradients->op->name : "",
          " mixes the gradients of two backward walks, and each has a loss scale of its own; for ",
          "gradients of gradients use bf16_mixed or f32, or no loss scaling");
  }

  Graph run() {
    begin_graph(to_.graph, from_, [&](ValueId id) { return give(id); });
    for (size_t n = 0; n < from_.nodes.size(); ++n) rewrite(NodeId(n));
    finish();
    return std::move(to_.graph);
  }

 private:
  ValueId give(ValueId id) {
    return forms_[{id, Form::traced}] = to_.graph.add_value(from_.type(id));
  }

  // ---- forms of values ----

  // `node` reads `id`: scaled where the walk starts, and at its own size where the update takes over.
  ValueId read(const Node& node, ValueId id, Form form) {
    if (loss_scale_.is_on() && node.phase == Phase::backward && is_seed(id))
      return scaled_seed(id, form);
    if (loss_scale_.is_on() && node.phase == Phase::update && flow_.is_gradient(id))
      return is_f32(from_, id) ? to_form(scaled_down(id), form) : scaled_down(id);
    return get(id, form);
  }

  ValueId get(ValueId id, Form form) {
    if (!is_f32(from_, id)) form = Form::traced;
    const auto found = forms_.find({id, form});
    if (found != forms_.end()) return found->second;
    const NodeId maker = from_.value(id).node;
    const Node* node = maker.valid() ? &from_.node(maker) : nullptr;
    const ValueId made =
        node && node->op->view ? make_view(*node, form) : make_form(id, node, form);
    return forms_[{id, form}] = made;
  }

  ValueId make_view(const Node& node, Form form) {
    const ValueId source = read(node, node.inputs[0], form);
    return to_.add(*node.op, {source}, node.attrs);
  }

  ValueId make_form(ValueId id, const Node* maker, Form form) {
    const Form stored = stored_[id.index()];
    if (form == Form::bf16 || form == Form::f16) {
      const DType dtype = form == Form::bf16 ? DType::bf16 : DType::f16;
      if (const int state = state_of(id); state >= 0 && !is_written_forward(state))
        return low_copy(state, dtype);
      if (maker && maker->op == &full_op)
        return to_.add(full_op, {}, with_attr(maker->attrs, {"dtype", dtype}));
    }
    return to_form(get(id, form == Form::rounded_bf16 ? Form::bf16 : stored), form);
  }

  ValueId to_form(ValueId x, Form form) {
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

  int state_of(ValueId id) const {
    for (size_t i = 0; i < from_.states.size(); ++i) {
      if (from_.states[i].before == id) return static_cast<int>(i);
    }
    return -1;
  }

  // A running statistic or a cache: its value at the start is not what it is cast from later.
  bool is_written_forward(int state) const {
    const StateSlot& slot = from_.states[static_cast<size_t>(state)];
    const NodeId maker = from_.value(slot.after).node;
    return slot.is_written() && maker.valid() && from_.node(maker).phase == Phase::forward;
  }

  ValueId low_copy(int state, DType dtype) {
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

  bool is_seed(ValueId id) const {
    return std::find(from_.seeds.begin(), from_.seeds.end(), id) != from_.seeds.end();
  }

  ValueId scaled_seed(ValueId id, Form form) {
    ValueId& scaled = scaled_seeds_[id];
    if (!scaled.valid()) scaled = loss_scale_.scale_up(get(id, Form::traced));
    return is_f32(from_, id) ? to_form(scaled, form) : scaled;
  }

  // A view of a gradient is a view of the gradient scaled down, so that each is scaled once.
  ValueId scaled_down(ValueId id) {
    const auto found = scaled_down_.find(id);
    if (found != scaled_down_.end()) return found->second;
    const Node& maker = from_.node(from_.value(id).node);
    const bool through_view = maker.op->view && flow_.is_gradient(maker.inputs[0]);
    const ValueId made = through_view
                             ? to_.add(*maker.op, {scaled_down(maker.inputs[0])}, maker.attrs)
                             : loss_scale_.scale_down(get(id, Form::traced));
    return scaled_down_[id] = made;
  }

  // ---- nodes ----

  void rewrite(NodeId id) {
    const Node& node = from_.node(id);
    const NodePlan& plan = flow_.nodes[id.index()];
    to_.set_place(node.phase, node.scope, node.segment);
    if (node.op->view) {  // made when somebody reads it
      stored_[node.outputs[0].index()] = stored_[node.inputs[0].index()];
      return;
    }
    if (node.body) return copy_repeat(node);
    if (plan.fp8 && is_float_call(node)) return rewrite_fp8(node);
    const bool low = takes_low(node, plan);
    const Form form = low ? form_of(plan.low) : Form::traced;
    ValueIds inputs;
    for (int i = 0; i < node.inputs.size(); ++i) {
      const bool wide =
          plan.rule->is_wide(i) || (low && is_free_scalar(from_, node, node.inputs[i]));
      inputs.push_back(read(node, node.inputs[i], wide ? Form::traced : form));
    }
    Attrs attrs = node.attrs;
    const bool sums = plan.rule->stores_sums && is_f32(from_, node.outputs[0]);
    if (low && sums && !flow_.wanted_low[node.outputs[0].index()])
      attrs = with_attr(attrs, {"dtype", DType::f32});
    if (!low) attrs = round_factors(node, *plan.rule, inputs, attrs);
    record(node, to_.add_all(*node.op, inputs, attrs));
  }

  // Its body is in this precision already; what goes in and out is as it was traced.
  void copy_repeat(const Node& node) {
    ValueIds inputs;
    std::vector<TensorType> types;
    for (ValueId id : node.inputs) inputs.push_back(read(node, id, Form::traced));
    for (ValueId id : node.outputs) types.push_back(from_.type(id));
    const NodeId made =
        to_.graph.add_node(*node.op, node.attrs, inputs, types, node.phase, node.scope);
    to_.graph.nodes.back().segment = node.segment;
    to_.graph.nodes.back().body = node.body;
    record(node, to_.graph.node(made).outputs);
  }

  bool takes_low(const Node& node, const NodePlan& plan) const {
    if (plan.low == DType::f32) return false;
    const auto has_low_input = [&] {
      for (int i = 0; i < node.inputs.size(); ++i) {
        const ValueId id = node.inputs[i];
        const bool wide = plan.rule->is_wide(i);
        if (!wide && stored_[id.index()] != Form::traced) return true;
      }
      return false;
    };
    switch (plan.rule->take) {
      case Take::low: return is_float_call(node);
      case Take::stored: return has_low_input();
      case Take::table: return is_wanted_low(node);
      case Take::follow: return has_low_input() && (is_wanted_low(node) || !makes_f32(node));
      case Take::wide: return false;
    }
    return false;
  }

  bool is_float_call(const Node& node) const { return is_f32(from_, node.inputs[0]); }
  bool makes_f32(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId id) { return is_f32(from_, id); });
  }
  bool is_wanted_low(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      return is_f32(from_, id) && flow_.wanted_low[id.index()] && !from_.type(id).shape.empty();
    });
  }

  // The policy for products of f32 operands.
  Attrs round_factors(const Node& node, const PrecisionRule& rule, ValueIds& inputs,
                      const Attrs& attrs) {
    if (options_.matmul == MatmulPrecision::ieee || rule.factors == 0 || !is_float_call(node))
      return attrs;
    const bool product = node.op == &matmul_op || node.op == &linear_op;
    const Form form = options_.matmul == MatmulPrecision::tf32 ? Form::tf32
                      : product                                ? Form::bf16
                                                               : Form::rounded_bf16;
    for (int i = 0; i < inputs.size(); ++i) {
      if (rule.is_factor(i)) inputs[i] = read(node, node.inputs[i], form);
    }
    return form == Form::bf16 ? with_attr(attrs, {"dtype", DType::f32}) : attrs;
  }

  // (a * sa) (b * sb) summed in f32, times 1 / sa and 1 / sb; the bias comes after that.
  void rewrite_fp8(const Node& node) {
    ValueIds factors, inverses;
    for (int i : {0, 1}) {
      const bool gradient = flow_.is_gradient(node.inputs[i]);
      factors.push_back(read(node, node.inputs[i], gradient ? Form::e5m2 : Form::e4m3));
      inverses.push_back(fp8_inverse_.at(base_of(factors[i])));
    }
    const ValueId product =
        to_.add(*node.op, factors, with_attr(node.attrs, {"dtype", DType::f32}));
    ValueId result = to_.add(mul_op, {product, to_.add(mul_op, inverses)});
    const bool low = flow_.wanted_low[node.outputs[0].index()];
    if (node.inputs.size() >
        2)  // a product in bf16 has a bias in bf16, as in the policy of that name
      result = to_.add(add_op, {result, get(node.inputs[2], low ? Form::bf16 : Form::traced)});
    if (low) result = to_.cast(result, DType::bf16);
    record(node, {result});
  }

  // The value that a chain of views shows.
  ValueId base_of(ValueId id) const {
    for (NodeId maker = to_.graph.value(id).node; maker.valid() && to_.graph.node(maker).op->view;
         maker = to_.graph.value(id).node)
      id = to_.graph.node(maker).inputs[0];
    return id;
  }

  void record(const Node& node, const ValueIds& results) {
    for (int i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      const Form form = is_f32(from_, id) ? form_of(to_.type(results[i]).dtype) : Form::traced;
      invariant(form != Form::traced || to_.type(results[i]) == from_.type(id),
                "precision: ", node.op->name, " makes ", to_.type(results[i]), " of what was ",
                from_.type(id));
      stored_[id.index()] = form;
      forms_[{id, form}] = results[i];
    }
  }

  // ---- the end ----

  // Outputs and states have the types that they were traced in.
  ValueId final_value(ValueId id) {
    return loss_scale_.is_on() && flow_.is_gradient(id) ? scaled_down(id) : get(id, Form::traced);
  }

  void finish() {
    to_.set_place(Phase::update, {});
    for (ValueId id : from_.outputs) to_.graph.outputs.push_back(final_value(id));
    std::vector<ValueId> after;
    for (const StateSlot& state : from_.states) after.push_back(final_value(state.after));
    loss_scale_.finish();
    for (size_t i = 0; i < from_.states.size(); ++i) {
      StateSlot& state = to_.graph.states[i];
      const bool by_update =
          from_.states[i].is_written() && !is_written_forward(static_cast<int>(i));
      state.after = by_update ? loss_scale_.keep_on_overflow(state.before, after[i]) : after[i];
    }
    for (StateSlot& state : to_.graph.states) {
      if (state.copy_of < 0) continue;
      const StateSlot& master = to_.graph.states[static_cast<size_t>(state.copy_of)];
      if (master.is_written()) state.after = to_.cast(master.after, to_.type(state.before).dtype);
    }
    fp8_.finish();
  }

  const Graph& from_;
  const PrecisionOptions& options_;
  PrecisionFlow flow_;
  GraphBuilder to_;
  LossScale loss_scale_;
  Fp8Scale fp8_;
  std::vector<Form> stored_;                           // by old value
  std::map<std::pair<ValueId, Form>, ValueId> forms_;  // of old values
  std::map<ValueId, ValueId> scaled_seeds_, scaled_down_;
  std::map<ValueId, ValueId> fp8_inverse_;  // by new 8-bit value: 1 / its scale
};

bool asks_for_nothing(const PrecisionOptions& options) {
  return options.policy == Precision::f32 && options.matmul == MatmulPrecision::ieee &&
         options.overrides.empty() &&
         (options.loss_scale.kind == LossScaling::automatic ||
          options.loss_scale.kind == LossScaling::none);
}

}  // namespace

Graph apply_precision(const Graph& graph, const PrecisionOptions& options) {
  if (asks_for_nothing(options)) return graph;
  PrecisionOptions complete = options;
  if (!complete.states) complete.states = std::make_shared<AddedStates>();
  return Rewriter(graph, complete).run();
}

}  // namespace brrr
