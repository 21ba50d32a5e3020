#include "brrr/compiler/fuse/region_ends.h"

#include <algorithm>

#include "brrr/compiler/codegen/codegen_cuda.h"

namespace brrr::compiler {
namespace {

bool contains(std::span<const NodeId> nodes, NodeId node) {
  return std::binary_search(nodes.begin(), nodes.end(), node);
}

}  // namespace

RegionEnds::RegionEnds(const Graph& graph, bool is_generated)
    : graph_(graph),
      is_generated_(is_generated),
      uses_(graph::uses_of(graph)),
      is_result_(graph.values.size(), false) {
  for (ValueId id : graph.outputs) is_result_[id.index()] = true;
  for (const StateSlot& state : graph.states) is_result_[state.after.index()] = true;
}

bool RegionEnds::is_used_outside(ValueId id, const Region& region) const {
  for (NodeId user : uses_[id.index()]) {
    if (!contains(region.nodes, user)) return true;
    const Node& node = graph_.node(user);
    if (node.op->view && is_used_outside(node.outputs[0], region)) return true;
  }
  return is_result(id);
}

TileProgramEnds RegionEnds::of(std::span<const NodeId> nodes, const Region& region,
                               ValueId given) const {
  TileProgramEnds ends{.inputs = {}, .outputs = {}, .given = given, .captured = {}};
  for (NodeId id : nodes) {
    for (ValueId input : graph_.node(id).inputs) {
      const NodeId maker = graph_.value(input).node;
      if (input == given || (maker.valid() && contains(nodes, maker))) continue;
      if (is_generated_ && constant_behind(graph_, input)) continue;
      if (std::find(ends.inputs.begin(), ends.inputs.end(), input) == ends.inputs.end())
        ends.inputs.push_back(input);
    }
  }
  for (NodeId id : nodes) {
    const ValueId output = graph_.node(id).outputs[0];
    if (is_used_outside(output, region)) ends.outputs.push_back(output);
  }
  return ends;
}

}  // namespace brrr::compiler
