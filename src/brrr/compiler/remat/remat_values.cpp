#include "brrr/compiler/remat/remat_values.h"

#include <algorithm>

namespace brrr::compiler {

StepParts::StepParts(const Graph& graph)
    : forward_nodes(graph.nodes.size()),
      is_needed_late(graph.values.size(), false),
      is_result(graph.values.size(), false),
      uses(graph::uses_of(graph)) {
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    forward_nodes[n] = graph.nodes[n].phase == Phase::forward;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (!is_forward(graph.values[v].node)) continue;
    is_needed_late[v] = std::any_of(uses[v].begin(), uses[v].end(),
                                    [&](NodeId reader) { return !is_forward(reader); });
    has_crossings = has_crossings || is_needed_late[v];
  }
  for (ValueId id : graph.outputs) is_result[id.index()] = true;
  for (const StateSlot& state : graph.states) {
    if (state.is_written()) is_result[state.after.index()] = true;
  }
}

NodeSet only_asked_for(const Graph& graph, const StepParts& parts, NodeSet again) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!parts.forward_nodes[n] || !node.op->view) continue;
    const NodeId shown = graph.value(node.inputs[0]).node;
    again[n] = parts.is_forward(shown) && again[shown.index()];
  }
  const std::vector<bool> asked = asked_late(graph, parts, again);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const ValueIds& outputs = graph.nodes[n].outputs;
    again[n] =
        again[n] && parts.forward_nodes[n] &&
        std::any_of(outputs.begin(), outputs.end(), [&](ValueId id) { return asked[id.index()]; });
  }
  return again;
}

std::vector<bool> asked_late(const Graph& graph, const StepParts& parts, const NodeSet& again) {
  std::vector<bool> asked = parts.is_needed_late;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    if (!parts.forward_nodes[n] || !(again[n] || node.op->view)) continue;
    const bool runs = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId id) { return asked[id.index()]; });
    if (!runs) continue;
    for (ValueId id : node.inputs) asked[id.index()] = true;
  }
  return asked;
}

bool lies_in(const Graph& graph, const Node& node, SegmentId segment) {
  for (SegmentId s = node.segment; s.valid(); s = graph.segments[s.index()].parent) {
    if (s == segment) return true;
  }
  return false;
}

SegmentId outermost_segment(const Graph& graph, SegmentId segment) {
  while (segment.valid() && graph.segments[segment.index()].parent.valid())
    segment = graph.segments[segment.index()].parent;
  return segment;
}

SegmentId checkpoint_around(const Graph& graph, const Node& node) {
  SegmentId found;
  for (SegmentId s = node.segment; s.valid(); s = graph.segments[s.index()].parent) {
    if (graph.segments[s.index()].checkpoint) found = s;
  }
  return found;
}

namespace {

// The update reads it, and no node of the backward part.
bool is_for_update(const Graph& graph, const std::vector<NodeId>& readers) {
  const auto is_read_by = [&](Phase phase) {
    return std::any_of(readers.begin(), readers.end(),
                       [&](NodeId reader) { return graph.node(reader).phase == phase; });
  };
  return is_read_by(Phase::update) && !is_read_by(Phase::backward);
}

}  // namespace

bool is_inner(const Graph& graph, const StepParts& parts, ValueId id, SegmentId segment) {
  if (!segment.valid() || parts.is_result[id.index()]) return false;
  const std::vector<NodeId>& readers = parts.uses[id.index()];
  if (is_for_update(graph, readers)) return false;
  return std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
    if (!parts.is_forward(reader)) return true;
    const Node& node = graph.node(reader);
    return lies_in(graph, node, segment) &&
           (!node.op->view || is_inner(graph, parts, node.outputs[0], segment));
  });
}

std::string name_of(const Graph& graph, ValueId id) {
  for (const GraphInput& input : graph.inputs) {
    if (input.value == id) return input.name;
  }
  for (const StateSlot& state : graph.states) {
    if (state.before == id) return state.name;
  }
  const Node& node = graph.node(graph.value(id).node);
  std::string name(node.op->name);
  if (node.phase != Phase::forward) name = join_text(graph::phase_name(node.phase), " ", name);
  for (ValueId input : node.inputs) {
    for (const StateSlot& state : graph.states) {
      if (state.before == input) return join_text(name, " of ", state.name);
    }
  }
  if (node.segment.valid())
    return join_text(name, " in ", graph.segments[node.segment.index()].name);
  return join_text(name, " %", id.value);
}

namespace {

// Who holds the bytes: a view stands for what it shows.
ValueId shown_by(const Graph& graph, ValueId id) {
  for (NodeId node = graph.value(id).node; node.valid() && graph.node(node).op->view;
       node = graph.value(id).node)
    id = graph.node(node).inputs[0];
  return id;
}

// Back from a value over what is not kept. A node that several values need counts for each of them.
double seconds_from_kept(const Graph& graph, ValueId id, const std::vector<bool>& is_kept,
                         const RematRates& rates) {
  std::vector<bool> visited(graph.nodes.size(), false);
  std::vector<ValueId> pending{id};
  double seconds = 0;
  while (!pending.empty()) {
    const ValueId next = pending.back();
    pending.pop_back();
    const NodeId maker = graph.value(next).node;
    if (!maker.valid() || visited[maker.index()] || (next != id && is_kept[next.index()])) continue;
    visited[maker.index()] = true;
    seconds += node_seconds(graph, graph.node(maker), rates);
    for (ValueId input : graph.node(maker).inputs) pending.push_back(input);
  }
  return seconds;
}

}  // namespace

std::vector<KeptValue> kept_values(const Graph& graph, const RematRates& rates) {
  const StepParts parts(graph);
  std::vector<bool> is_kept(graph.values.size(), false);
  std::vector<KeptValue> kept;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (parts.forward_nodes[n]) continue;
    for (ValueId input : graph.nodes[n].inputs) {
      const ValueId id = shown_by(graph, input);
      if (!parts.is_forward(graph.value(id).node) || is_kept[id.index()]) continue;
      is_kept[id.index()] = true;
      kept.push_back({.value = id,
                      .name = name_of(graph, id),
                      .bytes = bytes_of(graph, id),
                      .needed_by = NodeId(n)});
    }
  }
  for (KeptValue& value : kept)
    value.recompute_seconds = seconds_from_kept(graph, value.value, is_kept, rates);
  std::stable_sort(kept.begin(), kept.end(),
                   [](const KeptValue& a, const KeptValue& b) { return a.bytes > b.bytes; });
  return kept;
}

}  // namespace brrr::compiler
