#include "brrr/compiler/expand.h"

#include "brrr/compiler/graph_builder.h"
#include "brrr/graph/trace.h"

namespace brrr {
namespace {

// The composition of a node over the types of its operands, itself expanded.
Graph composition_of(const Graph& graph, const Node& node, Device device) {
  NoGrad nothing_is_recorded;
  Tracer tracer;
  Tensors handles;
  for (ValueId id : node.inputs)
    handles.push_back(
        tracer.add_input(graph.type(id), device, join_text("operand ", handles.size())));
  const Tensors results = node.op->compose({{handles.begin(), handles.end()}, node.attrs});
  return expand_for_cuda(tracer.finish({results.begin(), results.end()}), device);
}

class Expander {
 public:
  Expander(const Graph& graph, Device device)
      : from_(graph), device_(device), now_(graph.values.size()) {}

  Graph run() {
    begin_graph(to_, from_,
                [&](ValueId id) { return now_[id.index()] = to_.add_value(from_.type(id)); });
    for (const Node& node : from_.nodes) runs_on_cuda(node) ? copy(node) : expand(node);
    for (size_t i = 0; i < from_.states.size(); ++i)
      to_.states[i].after = now(from_.states[i].after);
    for (ValueId id : from_.outputs) to_.outputs.push_back(now(id));
    for (ValueId id : from_.seeds) to_.seeds.push_back(now(id));
    return std::move(to_);
  }

 private:
  ValueId now(ValueId id) const { return now_[id.index()]; }
  ValueIds inputs_of(const Node& node) const {
    ValueIds inputs;
    for (ValueId id : node.inputs) inputs.push_back(now(id));
    return inputs;
  }

  void copy(const Node& node) {
    const NodeId id = to_.add_copy(from_, node, inputs_of(node));
    if (node.body)
      to_.nodes[id.index()].body =
          std::make_shared<const Graph>(expand_for_cuda(*node.body, device_));
    for (int i = 0; i < node.outputs.size(); ++i)
      now_[node.outputs[i].index()] = to_.node(id).outputs[i];
  }

  void expand(const Node& node) {
    const Graph pieces = composition_of(from_, node, device_);
    check(pieces.states.empty(), node.op->name,
          ": its composition reads a tensor besides its operands");
    std::vector<ValueId> inside(pieces.values.size());
    for (size_t i = 0; i < pieces.inputs.size(); ++i)
      inside[pieces.inputs[i].value.index()] = now(node.inputs[static_cast<int>(i)]);
    for (const Node& piece : pieces.nodes) {
      ValueIds inputs;
      for (ValueId id : piece.inputs) inputs.push_back(inside[id.index()]);
      const NodeId id = to_.add_node(*piece.op, piece.attrs, inputs, types_of(pieces, piece),
                                     node.phase, node.scope);
      to_.nodes.back().segment = node.segment;
      for (int i = 0; i < piece.outputs.size(); ++i)
        inside[piece.outputs[i].index()] = to_.node(id).outputs[i];
    }
    for (int i = 0; i < node.outputs.size(); ++i)
      now_[node.outputs[i].index()] = inside[pieces.outputs[static_cast<size_t>(i)].index()];
  }

  static std::vector<TensorType> types_of(const Graph& graph, const Node& node) {
    std::vector<TensorType> types;
    for (ValueId id : node.outputs) types.push_back(graph.type(id));
    return types;
  }

  const Graph& from_;
  const Device device_;
  Graph to_;
  std::vector<ValueId> now_;  // by old id
};

}  // namespace

bool runs_on_cuda(const Node& node) {
  return node.op->view || node.op->cuda || node.op->cuda_text || node.body || !node.op->compose;
}

Graph expand_for_cuda(const Graph& graph, Device device) { return Expander(graph, device).run(); }

}  // namespace brrr
