#include "brrr/compiler/rewrite/simplify.h"

#include <map>

#include "brrr/compiler/rewrite/graph_builder.h"

namespace brrr::compiler {
namespace {

// What makes two nodes the same. Random ops take their key as an operand, so they are pure like others.
std::string key_of(const Node& node, const ValueIds& inputs) {
  std::string key(node.op->name);
  if (node.body) key += join_text("@", reinterpret_cast<uintptr_t>(node.body.get()));
  for (ValueId id : inputs) key += join_text(" %", id.value);
  for (const Attr& attr : node.attrs) {
    key += join_text(" ", attr.name, "#", attr.value.index(), "=");
    if (const double* number = std::get_if<double>(&attr.value)) {
      key.append(reinterpret_cast<const char*>(number), sizeof(*number));  // all its bits
    } else {
      std::visit([&](const auto& value) { append_text(key, value); }, attr.value);
    }
  }
  return key;
}

std::vector<bool> find_needed(const Graph& graph) {
  std::vector<bool> needed(graph.values.size(), false);
  for (ValueId id : graph.outputs) needed[id.index()] = true;
  for (const StateSlot& state : graph.states) needed[state.after.index()] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    bool any = false;
    for (ValueId id : node.outputs) any |= needed[id.index()];
    if (!any) continue;
    for (ValueId id : node.inputs) needed[id.index()] = true;
  }
  return needed;
}

class Simplifier {
 public:
  explicit Simplifier(const Graph& graph)
      : from_(graph), needed_(find_needed(graph)), now_(graph.values.size()) {}

  Graph run() {
    begin_graph(to_, from_, [&](ValueId id) { return give(id); });
    for (const Node& node : from_.nodes) {
      if (is_needed(node)) add(node);
    }
    end_graph(to_, from_, [&](ValueId id) { return now(id); });
    return std::move(to_);
  }

  // The wider value between the two casts may have no reader left.
  bool skipped_a_pair() const { return skipped_a_pair_; }

 private:
  ValueId now(ValueId id) const { return now_[id.index()]; }
  ValueId give(ValueId id) { return now_[id.index()] = to_.add_value(from_.type(id)); }

  bool is_needed(const Node& node) const {
    for (ValueId id : node.outputs) {
      if (needed_[id.index()]) return true;
    }
    return false;
  }

  // Not so a copy: it gives elements that lie in order to whoever needs them so. `lower` drops it where
  // they do already.
  bool changes_nothing(const Node& node) const {
    return node.op->role == OpRole::cast &&
           from_.type(node.inputs[0]) == from_.type(node.outputs[0]);
  }

  // The value that this cast gives back: one that was widened without loss and is narrowed again.
  ValueId cast_back_to(const Node& node, const ValueIds& inputs) const {
    if (node.op->role != OpRole::cast) return {};
    const NodeId maker = to_.value(inputs[0]).node;
    if (!maker.valid() || to_.node(maker).op->role != OpRole::cast) return {};
    const ValueId source = to_.node(maker).inputs[0];
    const TensorType &narrow = to_.type(source), &wide = to_.type(inputs[0]);
    const bool lossless = is_float(narrow.dtype) && is_float(wide.dtype) &&
                          promote(narrow.dtype, wide.dtype) == wide.dtype;
    return lossless && narrow == from_.type(node.outputs[0]) ? source : ValueId();
  }

  void add(const Node& node) {
    ValueIds inputs;
    for (ValueId id : node.inputs) inputs.push_back(now(id));
    if (changes_nothing(node)) {
      now_[node.outputs[0].index()] = inputs[0];
      return;
    }
    if (const ValueId source = cast_back_to(node, inputs); source.valid()) {
      now_[node.outputs[0].index()] = source;
      skipped_a_pair_ = true;
      return;
    }
    const auto [found, is_new] = seen_.emplace(key_of(node, inputs), NodeId(to_.nodes.size()));
    if (is_new) to_.add_copy(from_, node, inputs);
    for (int i = 0; i < node.outputs.size(); ++i)
      now_[node.outputs[i].index()] = to_.node(found->second).outputs[i];
  }

  const Graph& from_;
  Graph to_;
  std::vector<bool> needed_;
  std::vector<ValueId> now_;  // by old id: the value that stands for it
  std::map<std::string, NodeId, std::less<>> seen_;
  bool skipped_a_pair_ = false;
};

}  // namespace

Graph simplify(const Graph& graph) {
  Simplifier once(graph);
  const Graph result = once.run();
  return once.skipped_a_pair() ? Simplifier(result).run() : result;
}

}  // namespace brrr::compiler
