#include "brrr/compiler/remat/remat_rewrite.h"

#include <algorithm>

#include "brrr/compiler/rewrite/graph_builder.h"

namespace brrr::compiler {
namespace {

class Rewriter {
 public:
  Rewriter(const Graph& graph, const StepParts& parts, const NodeSet& again)
      : from_(graph),
        parts_(parts),
        again_(again),
        first_run_(graph.values.size()),
        second_run_(graph.values.size()) {}

  Graph run() {
    begin_graph(to_, from_, [&](ValueId id) { return give(id); });
    const std::vector<bool> is_needed = needed_nodes();
    for (size_t n = 0; n < from_.nodes.size(); ++n) {
      if (!parts_.forward_nodes[n]) {
        add_late(from_.nodes[n]);
      } else if (is_needed[n]) {
        add(from_.nodes[n], Phase::forward, first_run_);
      }
    }
    end_graph(to_, from_, [&](ValueId id) { return first_run_[id.index()]; });
    return std::move(to_);
  }

 private:
  ValueId give(ValueId id) {
    const ValueId value = to_.add_value(from_.type(id));
    return first_run_[id.index()] = second_run_[id.index()] = value;
  }

  bool runs_again(ValueId id) const {
    const NodeId maker = from_.value(id).node;
    return parts_.is_forward(maker) && again_[maker.index()];
  }

  // Forward nodes whose first run somebody reads: a result, another first run, or the backward part.
  std::vector<bool> needed_nodes() const {
    const std::vector<bool> asked = asked_late(from_, parts_, again_);
    std::vector<bool> is_read = parts_.is_result, is_needed(from_.nodes.size(), false);
    for (size_t n = from_.nodes.size(); n-- > 0;) {
      if (!parts_.forward_nodes[n]) continue;
      const Node& node = from_.nodes[n];
      is_needed[n] = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
        return is_read[id.index()] || (asked[id.index()] && !again_[n]);
      });
      if (!is_needed[n]) continue;
      for (ValueId id : node.inputs) is_read[id.index()] = true;
    }
    return is_needed;
  }

  // `values` says which run of the operands is meant, and learns of the results.
  void add(const Node& node, Phase phase, std::vector<ValueId>& values) {
    ValueIds inputs;
    for (ValueId id : node.inputs) inputs.push_back(values[id.index()]);
    const NodeId made = to_.add_copy(from_, node, inputs);
    to_.nodes[made.index()].phase = phase;
    for (int i = 0; i < node.outputs.size(); ++i)
      values[node.outputs[i].index()] = to_.node(made).outputs[i];
  }

  // What a later part sees of a value: the second run where there is one, else the first.
  void make_available(ValueId wanted) {
    std::vector<ValueId> pending{wanted};
    while (!pending.empty()) {
      const ValueId id = pending.back();
      if (!second_run_[id.index()].valid() && !runs_again(id))
        second_run_[id.index()] = first_run_[id.index()];
      if (second_run_[id.index()].valid()) {
        pending.pop_back();
        continue;
      }
      const Node& maker = from_.node(from_.value(id).node);
      const size_t before = pending.size();
      for (ValueId input : maker.inputs) {
        if (!second_run_[input.index()].valid()) pending.push_back(input);
      }
      if (pending.size() > before) continue;
      add(maker, Phase::recompute, second_run_);
      pending.pop_back();
    }
  }

  void add_late(const Node& node) {
    for (ValueId id : node.inputs) make_available(id);
    add(node, node.phase, second_run_);
    for (ValueId id : node.outputs) first_run_[id.index()] = second_run_[id.index()];
  }

  const Graph& from_;
  const StepParts& parts_;
  const NodeSet& again_;
  Graph to_;
  std::vector<ValueId> first_run_, second_run_;  // by old id: the value that stands for it
};

}  // namespace

Graph run_again(const Graph& graph, const StepParts& parts, const NodeSet& again) {
  return Rewriter(graph, parts, again).run();
}

}  // namespace brrr::compiler
