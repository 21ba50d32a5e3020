#include "brrr/compiler/fuse/join_losses.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "brrr/compiler/rewrite/replace_nodes.h"
#include "brrr/ops/op_list.h"

namespace brrr::compiler {
namespace {

class LossJoiner {
 public:
  explicit LossJoiner(const Graph& graph)
      : graph_(graph), readers_(graph.values.size()), is_kept_(graph.values.size(), false) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      for (ValueId id : graph.nodes[n].inputs) readers_[id.index()].push_back(n);
    }
    for (ValueId id : graph.outputs) is_kept_[id.index()] = true;
    for (const StateSlot& state : graph.states) is_kept_[state.after.index()] = true;
  }

  std::vector<Replacement> find() const {
    std::vector<Replacement> found;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (const std::optional<Replacement> made = join_at(n)) found.push_back(*made);
    }
    return found;
  }

 private:
  const std::vector<size_t>& readers_of(ValueId id) const { return readers_[id.index()]; }

  // The node at n as the gradient of a loss that nobody has read until then.
  std::optional<Replacement> join_at(size_t n) const {
    const Node& backward = graph_.nodes[n];
    if (backward.op->role != OpRole::cross_entropy_backward || backward.inputs.size() != 4)
      return {};
    const NodeId maker = graph_.value(backward.inputs[2]).node;
    if (!maker.valid()) return {};
    const Node& forward = graph_.node(maker);
    if (forward.op->role != OpRole::cross_entropy || forward.inputs[0] != backward.inputs[0] ||
        forward.inputs[1] != backward.inputs[1] || forward.attrs != backward.attrs)
      return {};
    const ValueId losses = forward.outputs[0], totals = forward.outputs[1];
    const std::vector<size_t>& readers = readers_of(losses);
    const bool is_read_later =
        std::all_of(readers.begin(), readers.end(), [&](size_t reader) { return reader > n; });
    if (!is_read_later || is_kept_[totals.index()] || readers_of(totals).size() != 1) return {};
    return Replacement{.at = n,
                       .place = NodeId(n),
                       .op = &classifier_op,
                       .attrs = backward.attrs,
                       .inputs = {backward.inputs[0], backward.inputs[1], backward.inputs[3]},
                       .results = {losses, backward.outputs[0]}};
  }

  const Graph& graph_;
  std::vector<std::vector<size_t>> readers_;  // nodes, by value
  std::vector<bool> is_kept_;                 // an output or a state: by value
};

}  // namespace

Graph join_losses(const Graph& graph) { return replace_nodes(graph, LossJoiner(graph).find()); }

}  // namespace brrr::compiler
