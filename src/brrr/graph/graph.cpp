#include "brrr/graph/graph.h"

#include "brrr/graph/repeat.h"

namespace brrr::graph {
namespace {

using TypeRefs = SmallVector<TypeRef, 4>;

TypeRefs refs_to(const Graph& graph, const ValueIds& ids) {
  TypeRefs refs;
  for (ValueId id : ids) {
    const TensorType& type = graph.type(id);
    refs.push_back({&type.shape, type.dtype, type.weak});
  }
  return refs;
}

}  // namespace

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::forward: return "forward";
    case Phase::backward: return "backward";
    case Phase::update: return "update";
    case Phase::recompute: return "recompute";
  }
  return "unknown";
}

ValueId Graph::add_value(const TensorType& type) {
  values.push_back({.type = type});
  return ValueId(values.size() - 1);
}

NodeId Graph::add_node(const OpDef& op, const Attrs& attrs, const ValueIds& node_inputs,
                       std::span<const TensorType> types, Phase phase, std::string_view scope,
                       std::shared_ptr<const Graph> body) {
  const NodeId id(nodes.size());
  Node node{.op = &op,
            .attrs = attrs,
            .inputs = node_inputs,
            .outputs = {},
            .phase = phase,
            .scope = scope,
            .segment = {},
            .body = std::move(body)};
  for (const TensorType& type : types) {
    const ValueId output = add_value(type);
    values.back().node = id;
    values.back().output = node.outputs.size();
    node.outputs.push_back(output);
  }
  nodes.push_back(std::move(node));
  return id;
}

NodeId Graph::add_copy(const Graph& from, const Node& node, const ValueIds& node_inputs) {
  TensorTypes types;
  for (ValueId id : node.outputs) types.push_back(from.type(id));
  const NodeId id =
      add_node(*node.op, node.attrs, node_inputs, types, node.phase, node.scope, node.body);
  nodes.back().segment = node.segment;
  return id;
}

TensorTypes infer_types(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs) {
  TypeRefs refs;
  for (const TensorType& type : inputs) refs.push_back({&type.shape, type.dtype, type.weak});
  return op.infer({op, refs, attrs});
}

TensorTypes infer_types(const Graph& graph, const Node& node) {
  if (node.op->role == OpRole::repeat) return infer_repeat(graph, node);
  const TypeRefs refs = refs_to(graph, node.inputs);
  return node.op->infer({*node.op, refs, node.attrs});
}

Cost cost_of(const Graph& graph, const Node& node) {
  if (node.op->role == OpRole::repeat) return cost_of_repeat(node);
  const TypeRefs refs = refs_to(graph, node.inputs);
  TensorTypes outputs;
  for (ValueId id : node.outputs) outputs.push_back(graph.type(id));
  return cost_of(CostCall{{*node.op, refs, node.attrs}, outputs});
}

Cost cost_of(const Graph& graph) {
  Cost total;
  for (const Node& node : graph.nodes) total += cost_of(graph, node);
  return total;
}

std::vector<std::vector<NodeId>> uses_of(const Graph& graph) {
  std::vector<std::vector<NodeId>> uses(graph.values.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (ValueId input : graph.nodes[n].inputs) {
      std::vector<NodeId>& readers = uses[input.index()];
      if (readers.empty() || readers.back() != NodeId(n)) readers.emplace_back(n);
    }
  }
  return uses;
}

}  // namespace brrr::graph
