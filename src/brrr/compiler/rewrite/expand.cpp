#include "brrr/compiler/rewrite/expand.h"

#include "brrr/compiler/rewrite/graph_builder.h"
#include "brrr/graph/trace.h"
#include "brrr/kernels/cpu/elementwise/unary_tiles.h"

namespace brrr::compiler {
namespace {

// The composition of a node over the types of its operands, itself expanded.
Graph composition_of(const Graph& graph, const Node& node, Device device, HasKernel has_kernel) {
  NoGrad nothing_is_recorded;
  graph::Tracer tracer;
  Tensors handles;
  for (ValueId id : node.inputs)
    handles.push_back(
        tracer.add_input(graph.type(id), device, join_text("operand ", handles.size())));
  const Tensors results = node.op->compose({{handles.begin(), handles.end()}, node.attrs});
  return expand(tracer.finish({results.begin(), results.end()}), device, has_kernel);
}

class Expander {
 public:
  Expander(const Graph& graph, Device device, HasKernel has_kernel)
      : from_(graph), device_(device), has_kernel_(has_kernel), now_(graph.values.size()) {}

  Graph run() {
    begin_graph(to_, from_,
                [&](ValueId id) { return now_[id.index()] = to_.add_value(from_.type(id)); });
    for (const Node& node : from_.nodes) runs_as_it_is(node) ? copy(node) : expand_node(node);
    end_graph(to_, from_, [&](ValueId id) { return now(id); });
    return std::move(to_);
  }

 private:
  ValueId now(ValueId id) const { return now_[id.index()]; }
  ValueIds inputs_of(const Node& node) const {
    ValueIds inputs;
    for (ValueId id : node.inputs) inputs.push_back(now(id));
    return inputs;
  }

  // Tensor cores drop the bits themselves: the operands as they were, and a word to the product.
  bool is_rounded(ValueId id) const {
    const NodeId maker = from_.value(id).node;
    if (!maker.valid()) return false;
    const Node& node = from_.node(maker);
    return kernels::computes(*node.op, kernels::Unary::to_tf32) ||
           (node.op->view && is_rounded(node.inputs[0]));
  }
  bool is_tf32_product(const Node& node) const {
    return graph::is_matmul(node) && is_rounded(node.inputs[0]) && is_rounded(node.inputs[1]);
  }
  // What was rounded, seen through the same views.
  ValueId before_rounding(ValueId id) {
    const Node& node = from_.node(from_.value(id).node);
    if (kernels::computes(*node.op, kernels::Unary::to_tf32)) return now(node.inputs[0]);
    const NodeId view = to_.add_copy(from_, node, {before_rounding(node.inputs[0])});
    return to_.node(view).outputs[0];
  }

  void copy(const Node& node) {
    if (is_tf32_product(node)) return copy_tf32_product(node);
    const NodeId id = to_.add_copy(from_, node, inputs_of(node));
    if (node.body)
      to_.nodes[id.index()].body =
          std::make_shared<const Graph>(expand(*node.body, device_, has_kernel_));
    for (int i = 0; i < node.outputs.size(); ++i)
      now_[node.outputs[i].index()] = to_.node(id).outputs[i];
  }

  void copy_tf32_product(const Node& node) {
    ValueIds inputs = inputs_of(node);
    for (int i = 0; i < 2; ++i) inputs[i] = before_rounding(node.inputs[i]);
    const NodeId id = to_.add_copy(from_, node, inputs);
    to_.nodes[id.index()].attrs = with_attr(node.attrs, {"tf32", true});
    for (int i = 0; i < node.outputs.size(); ++i)
      now_[node.outputs[i].index()] = to_.node(id).outputs[i];
  }

  bool runs_as_it_is(const Node& node) const {
    return node.op->view || node.body || !node.op->compose || has_kernel_(*node.op);
  }

  void expand_node(const Node& node) {
    const Graph pieces = composition_of(from_, node, device_, has_kernel_);
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
  const HasKernel has_kernel_;
  Graph to_;
  std::vector<ValueId> now_;  // by old id
};

}  // namespace

Graph expand(const Graph& graph, Device device, HasKernel has_kernel) {
  return Expander(graph, device, has_kernel).run();
}

}  // namespace brrr::compiler
