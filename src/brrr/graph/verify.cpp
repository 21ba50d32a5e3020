#include "brrr/graph/verify.h"

namespace brrr::graph {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, std::string_view after)
      : graph_(graph), after_(after), made_(graph.values.size(), false) {}

  void run() {
    for (const GraphInput& input : graph_.inputs) add_given(input.value, input.name);
    for (const StateSlot& state : graph_.states) add_given(state.before, state.name);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) check_node(NodeId(n));
    for (size_t v = 0; v < made_.size(); ++v)
      invariant(static_cast<bool>(made_[v]), "after ", after_, ": nobody makes value %", v);
    for (const StateSlot& state : graph_.states) {
      require_made(state.after, state.name);
      invariant(graph_.type(state.after) == graph_.type(state.before), "after ", after_,
                ": state \"", state.name, "\" of type ", graph_.type(state.before),
                " is written with ", graph_.type(state.after));
      if (state.copy_of >= 0) check_copy(state);
    }
    for (ValueId output : graph_.outputs) require_made(output, "the outputs");
    for (ValueId seed : graph_.seeds) require_made(seed, "the seeds");
  }

 private:
  void require_made(ValueId id, std::string_view reader) const {
    invariant(id.valid() && id.index() < made_.size() && made_[id.index()], "after ", after_, ": ",
              reader, " reads %", id.value, " before it is made");
  }

  void mark_made(ValueId id, std::string_view maker) {
    invariant(id.valid() && id.index() < made_.size() && !made_[id.index()], "after ", after_, ": ",
              maker, " makes %", id.value, ", which exists already");
    made_[id.index()] = true;
  }

  void add_given(ValueId id, std::string_view name) {
    mark_made(id, name);
    invariant(!graph_.value(id).node.valid(), "after ", after_, ": \"", name,
              "\" is given, and yet a node claims to make it");
  }

  void check_copy(const StateSlot& copy) const {
    const auto of = static_cast<size_t>(copy.copy_of);
    invariant(of < graph_.states.size() && graph_.states[of].copy_of < 0, "after ", after_,
              ": state \"", copy.name, "\" is a copy of state ", of, ", which is none or a copy");
    const StateSlot& master = graph_.states[of];
    invariant(graph_.type(copy.before).shape == graph_.type(master.before).shape &&
                  copy.is_written() == master.is_written(),
              "after ", after_, ": state \"", copy.name, "\" is a copy of \"", master.name,
              "\" and has another shape, or is written when that is not");
  }

  void check_node(NodeId id) {
    const Node& node = graph_.node(id);
    for (ValueId input : node.inputs) require_made(input, node.op->name);
    if (node.body) verify(*node.body, join_text(after_, ", body of ", node.op->name));
    const TensorTypes types = infer_types(graph_, node);
    invariant(types.size() == node.outputs.size(), "after ", after_, ": ", node.op->name, " makes ",
              types.size(), " values, not ", node.outputs.size());
    for (int i = 0; i < types.size(); ++i) {
      mark_made(node.outputs[i], node.op->name);
      const Value& value = graph_.value(node.outputs[i]);
      invariant(value.node == id && value.output == i, "after ", after_, ": %",
                node.outputs[i].value, " does not know that ", node.op->name, " makes it");
      invariant(value.type == types[i], "after ", after_, ": %", node.outputs[i].value, " is ",
                value.type, " and ", node.op->name, " makes ", types[i]);
    }
  }

  const Graph& graph_;
  std::string_view after_;
  std::vector<bool> made_;
};

}  // namespace

void verify(const Graph& graph, std::string_view after) { Verifier(graph, after).run(); }

}  // namespace brrr::graph
