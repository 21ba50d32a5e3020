// The bodies of repeats: micro-batches in this precision.
#include <algorithm>

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/precision/precision_rewriter.h"
#include "brrr/graph/repeat.h"
#include "brrr/kernels/cpu/elementwise/binary_tiles.h"

namespace brrr::compiler {

PrecisionRewriter::PrecisionRewriter(const Node& repeat, PrecisionRewriter& around)
    : PrecisionRewriter(*repeat.body, around.options_, &repeat, &around) {
  find_scaled_sums();
}

// Inputs, first values and results are as they were traced. Sums of gradients leave the body with the loss
// scale in them: divided by it once, behind the last iteration, they are rounded no more than without it, and
// products of the body may be added to them as they are.
void PrecisionRewriter::rewrite_repeat(const Node& node) {
  PrecisionRewriter inner(node, *this);
  Graph body = inner.run();
  ValueIds inputs;
  for (ValueId id : node.inputs) inputs.push_back(final_value(id));
  ValueIds results = inner.ports_.add_repeat(to_, node, std::move(body), inputs);
  to_.set_place(Phase::update, node.scope, node.segment);
  for (int s = 0; s < results.size(); ++s) {
    if (inner.scaled_sums_.count(node.body->states[static_cast<size_t>(s)].after))
      results[s] = loss_scale_.scale_down(results[s]);
  }
  record(node, results);
}

// sum + gradient, where nobody else sees either sum. Whatever else a body does with gradients (clip them, say)
// it does at their own size.
void PrecisionRewriter::find_scaled_sums() {
  if (!loss_scale_.is_on()) return;
  const int sums = graph::repeat_node(repeat_->attrs).sums;
  const std::vector<std::vector<NodeId>> uses = graph::uses_of(from_);
  for (size_t s = 0; s < static_cast<size_t>(sums); ++s) {
    const StateSlot& sum = from_.states[s];
    const NodeId maker = from_.value(sum.after).node;
    const auto& readers = uses[sum.before.index()];
    if (!maker.valid() || readers.size() != 1 || readers[0] != maker) continue;
    const Node& node = from_.node(maker);
    if (!kernels::computes(*node.op, kernels::Binary::add) || node.phase != Phase::update ||
        !uses[sum.after.index()].empty())
      continue;
    const ValueId part = node.inputs[node.inputs[0] == sum.before ? 1 : 0];
    if (flow_.is_gradient(part)) scaled_sums_.insert(sum.after);
  }
}

// What is the same in all iterations is cast once, outside; parameters have copies there. None: `id` is no such
// value.
ValueId PrecisionRewriter::cast_outside(ValueId id, Form form) {
  const RepeatNode parts = graph::repeat_node(repeat_->attrs);
  for (int i = parts.first_captured(); i < parts.first_initial(); ++i) {
    const GraphInput& input = from_.inputs[static_cast<size_t>(i)];
    const ValueId outside = repeat_->inputs[i];
    if (input.value != id || around_->flow_.is_gradient(outside)) continue;
    const DType dtype = form == Form::bf16 ? DType::bf16 : DType::f16;
    return ports_.give(join_text(input.name, ".", to_text(dtype)),
                       {.shape = from_.type(id).shape, .dtype = dtype},
                       [this, outside, form] { return around_->get(outside, form); });
  }
  return {};
}

}  // namespace brrr::compiler
