#include "brrr/compiler/rewrite/replace_nodes.h"

#include <algorithm>
#include <map>

#include "brrr/compiler/rewrite/graph_builder.h"
#include "brrr/ops/op_list.h"

namespace brrr::compiler {
namespace {

class Replacer {
 public:
  Replacer(const Graph& graph, const std::vector<Replacement>& replacements)
      : from_(graph),
        is_replaced_(graph.values.size(), false),
        is_needed_(graph.values.size(), false),
        now_(graph.values.size()) {
    for (const Replacement& each : replacements) {
      by_place_.emplace(each.at, &each);
      for (ValueId id : each.results) is_replaced_[id.index()] = true;
    }
    find_needed();
  }

  Graph run() {
    begin_graph(to_, from_,
                [&](ValueId id) { return now_[id.index()] = to_.add_value(from_.type(id)); });
    for (size_t n = 0; n < from_.nodes.size(); ++n) {
      for (auto [it, end] = by_place_.equal_range(n); it != end; ++it) add(*it->second);
      if (is_kept(from_.nodes[n])) copy(from_.nodes[n]);
    }
    end_graph(to_, from_, [&](ValueId id) { return now(id); });
    return std::move(to_);
  }

 private:
  ValueId now(ValueId id) const { return now_[id.index()]; }
  ValueIds now(const ValueIds& ids) const {
    ValueIds values;
    for (ValueId id : ids) values.push_back(now(id));
    return values;
  }

  bool is_kept(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      return is_needed_[id.index()] && !is_replaced_[id.index()];
    });
  }

  // Backwards: whoever reads a value stands behind its maker, old or new.
  void find_needed() {
    const auto need = [&](const auto& ids) {
      for (ValueId id : ids) is_needed_[id.index()] = true;
    };
    need(from_.outputs);
    for (const StateSlot& state : from_.states) is_needed_[state.after.index()] = true;
    for (size_t n = from_.nodes.size(); n-- > 0;) {
      if (is_kept(from_.nodes[n])) need(from_.nodes[n].inputs);
      for (auto [it, end] = by_place_.equal_range(n); it != end; ++it) need(it->second->inputs);
    }
  }

  void copy(const Node& node) {
    const NodeId id = to_.add_copy(from_, node, now(node.inputs));
    for (int i = 0; i < node.outputs.size(); ++i) {
      if (!is_replaced_[node.outputs[i].index()])
        now_[node.outputs[i].index()] = to_.node(id).outputs[i];
    }
  }

  ValueIds add_node(const Node& place, const OpDef& op, const ValueIds& inputs,
                    const Attrs& attrs) {
    std::vector<TensorType> types;
    for (ValueId id : inputs) types.push_back(to_.type(id));
    const TensorTypes made = graph::infer_types(op, attrs, types);
    const NodeId id =
        to_.add_node(op, attrs, inputs, {made.begin(), made.end()}, place.phase, place.scope);
    to_.nodes.back().segment = place.segment;
    return to_.node(id).outputs;
  }

  static ValueIds write_one(const Replacement& made, const AddNode& add_one, ValueIds inputs) {
    if (made.transposed >= 0) {
      ValueId& matrix = inputs[made.transposed];
      matrix = add_one(transpose_op, {matrix}, {{"a", int64_t{0}}, {"b", int64_t{1}}})[0];
    }
    return add_one(*made.op, inputs, made.attrs);
  }

  void add(const Replacement& made) {
    const Node& place = from_.node(made.place);
    const AddNode add_one = [&](const OpDef& op, const ValueIds& inputs, const Attrs& attrs) {
      return add_node(place, op, inputs, attrs);
    };
    const ValueIds inputs = now(made.inputs);
    const ValueIds given =
        made.write ? made.write(add_one, inputs) : write_one(made, add_one, inputs);
    for (int i = 0; i < made.results.size(); ++i) {
      invariant(to_.type(given[i]) == from_.type(made.results[i]), place.op->name,
                " is replaced by a value of another type");
      now_[made.results[i].index()] = given[i];
    }
  }

  const Graph& from_;
  std::multimap<size_t, const Replacement*> by_place_;
  std::vector<bool> is_replaced_, is_needed_;  // by old value
  Graph to_;
  std::vector<ValueId> now_;  // by old value
};

}  // namespace

Graph replace_nodes(const Graph& graph, const std::vector<Replacement>& replacements) {
  return replacements.empty() ? graph : Replacer(graph, replacements).run();
}

}  // namespace brrr::compiler
