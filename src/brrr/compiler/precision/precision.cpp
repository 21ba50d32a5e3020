#include "brrr/compiler/precision/precision.h"

#include "brrr/compiler/precision/precision_rewriter.h"

namespace brrr::compiler {
namespace {

Device device_of(const Graph& graph) {
  for (const StateSlot& state : graph.states) {
    if (state.tensor.defined()) return state.tensor.device();
  }
  return Device::cpu();
}

bool asks_for_nothing(const PrecisionOptions& options) {
  return options.policy == Precision::f32 && options.matmul == MatmulPrecision::ieee &&
         options.overrides.empty() &&
         (options.loss_scale.kind == LossScaling::automatic ||
          options.loss_scale.kind == LossScaling::none);
}

}  // namespace

PrecisionRewriter::PrecisionRewriter(const Graph& graph, const PrecisionOptions& options)
    : PrecisionRewriter(graph, options, nullptr, nullptr) {}

PrecisionRewriter::PrecisionRewriter(const Graph& graph, const PrecisionOptions& options,
                                     const Node* repeat, PrecisionRewriter* around)
    : from_(graph),
      options_(options),
      repeat_(repeat),
      around_(around),
      flow_(plan_precision(graph, options)),
      ports_(to_),
      loss_scale_(to_, options, around ? &ports_ : nullptr,
                  around ? &around->loss_scale_ : nullptr),
      fp8_(to_, options, around ? &ports_ : nullptr, around ? &around->fp8_ : nullptr),
      stored_(graph.values.size(), Form::traced) {
  to_.set_device(around ? around->to_.device() : device_of(graph));
  check(!loss_scale_.is_on() || !flow_.mixes_gradients,
        "precision: ", flow_.mixes_gradients ? flow_.mixes_gradients->op->name : "",
        " mixes the gradients of two backward walks, and each has a loss scale of its own; for ",
        "gradients of gradients use bf16_mixed or f32, or no loss scaling");
}

Graph PrecisionRewriter::run() {
  begin_graph(to_.graph, from_, [&](ValueId id) { return give(id); });
  for (size_t n = 0; n < from_.nodes.size(); ++n) rewrite(NodeId(n));
  finish();
  return std::move(to_.graph);
}

void PrecisionRewriter::finish() {
  to_.set_place(Phase::update, {});
  for (ValueId id : from_.outputs) to_.graph.outputs.push_back(final_value(id));
  std::vector<ValueId> after;
  for (const StateSlot& state : from_.states) after.push_back(final_value(state.after));
  loss_scale_.finish();
  finish_states(after);
  fp8_.finish();
}

// A step with an overflow changes nothing, but what the forward part wrote; whether there was one is known
// behind the last iteration of a body, not in it.
void PrecisionRewriter::finish_states(const std::vector<ValueId>& after) {
  for (size_t i = 0; i < from_.states.size(); ++i) {
    StateSlot& state = to_.graph.states[i];
    const bool by_update = from_.states[i].is_written() && !is_written_forward(static_cast<int>(i));
    state.after = by_update ? loss_scale_.keep_on_overflow(state.before, after[i]) : after[i];
  }
  for (StateSlot& state : to_.graph.states) {
    if (state.copy_of < 0) continue;
    const StateSlot& master = to_.graph.states[static_cast<size_t>(state.copy_of)];
    if (master.is_written()) state.after = to_.cast(master.after, to_.type(state.before).dtype);
  }
}

Graph apply_precision(const Graph& graph, const PrecisionOptions& options) {
  if (asks_for_nothing(options)) return graph;
  check_overrides(graph, options.overrides);
  PrecisionOptions complete = options;
  if (!complete.states) complete.states = std::make_shared<AddedStates>();
  return PrecisionRewriter(graph, complete).run();
}

}  // namespace brrr::compiler
