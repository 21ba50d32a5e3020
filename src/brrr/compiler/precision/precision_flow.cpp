#include "brrr/compiler/precision/precision_flow.h"

#include <algorithm>

namespace brrr::compiler {
namespace {

std::vector<NodePlan> plan_nodes(const Graph& graph, const PrecisionOptions& options) {
  const std::vector<Precision> precisions = node_precisions(graph, options);
  std::vector<NodePlan> plans;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const PrecisionRule& rule = find_precision_rule(graph.nodes[n]);
    const DType asked = low_dtype(precisions[n]);
    // What goes into a body and comes out of it is as it was traced; it decides inside.
    const bool can = rule.take != Take::wide && !graph.nodes[n].body &&
                     graph.nodes[n].op->dtypes.contains(asked);
    const DType low = can ? asked : DType::f32;
    plans.push_back({&rule, low, rule.takes_fp8 && precisions[n] == Precision::fp8_mixed});
  }
  return plans;
}

// From the last node to the first. What the forward part reads decides over forward values, so that a
// loss that is f32 to its end stays so, and backward casts what it needs of it.
class WantedLow {
 public:
  WantedLow(const Graph& graph, const std::vector<NodePlan>& plans)
      : graph_(graph), plans_(plans), readers_(graph.values.size()) {}

  std::vector<bool> run() {
    for (ValueId id : graph_.outputs) readers_[id.index()].any = true;
    for (const StateSlot& state : graph_.states) readers_[state.after.index()].any = true;
    for (size_t n = graph_.nodes.size(); n-- > 0;) visit(graph_.nodes[n], plans_[n]);
    std::vector<bool> wanted;
    for (size_t v = 0; v < graph_.values.size(); ++v) wanted.push_back(is_wanted(ValueId(v)));
    return wanted;
  }

 private:
  struct Readers {
    bool any = false, forward = false;      // there are some; there are some in the forward part
    bool low = false, forward_low = false;  // one of them takes the low type
  };

  bool is_wanted(ValueId id) const {
    if (!is_f32(graph_, id)) return false;
    const NodeId maker = graph_.value(id).node;
    const bool forward = maker.valid() && graph_.node(maker).phase == Phase::forward;
    const Readers& readers = readers_[id.index()];
    return forward && readers.forward ? readers.forward_low : readers.low;
  }

  // A view or a node that follows passes on what its own readers want.
  bool takes_low(const Node& node, const NodePlan& plan) const {
    const bool asks_readers =
        node.op->view || plan.rule->take == Take::follow || plan.rule->take == Take::table;
    if (!node.op->view && plan.low == DType::f32) return false;
    return !asks_readers || std::any_of(node.outputs.begin(), node.outputs.end(),
                                        [&](ValueId id) { return is_wanted(id); });
  }

  void visit(const Node& node, const NodePlan& plan) {
    const bool read = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId id) { return readers_[id.index()].any; });
    if (!read) return;
    const bool takes = takes_low(node, plan);
    for (int i = 0; i < node.inputs.size(); ++i) {
      const bool stays_wide = plan.rule->is_wide(i) || is_free_scalar(graph_, node, node.inputs[i]);
      Readers& readers = readers_[node.inputs[i].index()];
      readers.any = true;
      readers.forward |= node.phase == Phase::forward;
      if (!takes || stays_wide) continue;
      readers.low = true;
      readers.forward_low |= node.phase == Phase::forward;
    }
  }

  const Graph& graph_;
  const std::vector<NodePlan>& plans_;
  std::vector<Readers> readers_;  // by value
};

// Backward nodes are linear in the seed that they come from.
void find_gradients(const Graph& graph, PrecisionFlow& flow) {
  flow.gradient_of.assign(graph.values.size(), -1);
  const auto seed_of = [&](ValueId id) {
    const auto seed = std::find(graph.seeds.begin(), graph.seeds.end(), id);
    return seed != graph.seeds.end() ? static_cast<int>(seed - graph.seeds.begin())
                                     : flow.gradient_of[id.index()];
  };
  for (const Node& node : graph.nodes) {
    if (node.phase != Phase::backward) continue;
    int found = -1;
    for (ValueId id : node.inputs) {
      const int seed = seed_of(id);
      if (found >= 0 && seed >= 0 && found != seed) flow.mixes_gradients = &node;
      found = std::max(found, seed);
    }
    for (ValueId id : node.outputs) {
      if (is_float(graph.type(id).dtype)) flow.gradient_of[id.index()] = found;
    }
  }
}

}  // namespace

bool is_free_scalar(const Graph& graph, const Node& node, ValueId input) {
  return node.op->kind == OpKind::elementwise && graph.type(input).shape.empty();
}

PrecisionFlow plan_precision(const Graph& graph, const PrecisionOptions& options) {
  PrecisionFlow flow;
  flow.nodes = plan_nodes(graph, options);
  flow.wanted_low = WantedLow(graph, flow.nodes).run();
  find_gradients(graph, flow);
  return flow;
}

}  // namespace brrr::compiler
