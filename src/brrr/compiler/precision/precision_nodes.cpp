// What becomes of single nodes.
#include <algorithm>

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/precision/precision_rewriter.h"
#include "brrr/ops/op_list.h"

namespace brrr::compiler {

void PrecisionRewriter::rewrite(NodeId id) {
  const Node& node = from_.node(id);
  const NodePlan& plan = flow_.nodes[id.index()];
  to_.set_place(node.phase, node.scope, node.segment);
  if (node.op->view) {  // made when somebody reads it
    stored_[node.outputs[0].index()] = stored_[node.inputs[0].index()];
    return;
  }
  if (node.body) return rewrite_repeat(node);
  if (plan.fp8 && is_float_call(node)) return rewrite_fp8(node);
  const bool low = takes_low(node, plan);
  const Form form = low ? form_of(plan.low) : Form::traced;
  ValueIds inputs;
  for (int i = 0; i < node.inputs.size(); ++i) {
    const bool wide = plan.rule->is_wide(i) || (low && is_free_scalar(from_, node, node.inputs[i]));
    inputs.push_back(read(node, node.inputs[i], wide ? Form::traced : form));
  }
  Attrs attrs = node.attrs;
  const bool sums = plan.rule->stores_sums && is_f32(from_, node.outputs[0]);
  if (low && sums && !flow_.wanted_low[node.outputs[0].index()])
    attrs = with_attr(attrs, {"dtype", DType::f32});
  if (!low) attrs = round_factors(node, *plan.rule, inputs, attrs);
  record(node, to_.add_all(*node.op, inputs, attrs));
}

bool PrecisionRewriter::takes_low(const Node& node, const NodePlan& plan) const {
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

bool PrecisionRewriter::makes_f32(const Node& node) const {
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId id) { return is_f32(from_, id); });
}
bool PrecisionRewriter::is_wanted_low(const Node& node) const {
  return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
    return is_f32(from_, id) && flow_.wanted_low[id.index()] && !from_.type(id).shape.empty();
  });
}

// The policy for products of f32 operands.
Attrs PrecisionRewriter::round_factors(const Node& node, const PrecisionRule& rule,
                                       ValueIds& inputs, const Attrs& attrs) {
  if (options_.matmul == MatmulPrecision::ieee || rule.factors == 0 || !is_float_call(node))
    return attrs;
  const Form form = options_.matmul == MatmulPrecision::tf32 ? Form::tf32
                    : graph::is_matmul(node)                 ? Form::bf16
                                                             : Form::rounded_bf16;
  for (int i = 0; i < inputs.size(); ++i) {
    if (rule.is_factor(i)) inputs[i] = read(node, node.inputs[i], form);
  }
  return form == Form::bf16 ? with_attr(attrs, {"dtype", DType::f32}) : attrs;
}

// (a * sa) (b * sb) summed in f32, times 1 / sa and 1 / sb; the bias comes after that.
void PrecisionRewriter::rewrite_fp8(const Node& node) {
  ValueIds factors, inverses;
  for (int i : {0, 1}) {
    const bool gradient = flow_.is_gradient(node.inputs[i]);
    factors.push_back(read(node, node.inputs[i], gradient ? Form::e5m2 : Form::e4m3));
    inverses.push_back(fp8_inverse_.at(base_of(factors[i])));
  }
  const ValueId product = to_.add(*node.op, factors, with_attr(node.attrs, {"dtype", DType::f32}));
  ValueId result = to_.add(mul_op, {product, to_.add(mul_op, inverses)});
  const bool low = flow_.wanted_low[node.outputs[0].index()];
  if (node.inputs.size() >
      2)  // a product in bf16 has a bias in bf16, as in the policy of that name
    result = to_.add(add_op, {result, get(node.inputs[2], low ? Form::bf16 : Form::traced)});
  if (low) result = to_.cast(result, DType::bf16);
  record(node, {result});
}

// The value that a chain of views shows.
ValueId PrecisionRewriter::base_of(ValueId id) const {
  for (NodeId maker = to_.graph.value(id).node; maker.valid() && to_.graph.node(maker).op->view;
       maker = to_.graph.value(id).node)
    id = to_.graph.node(maker).inputs[0];
  return id;
}

void PrecisionRewriter::record(const Node& node, const ValueIds& results) {
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

}  // namespace brrr::compiler
