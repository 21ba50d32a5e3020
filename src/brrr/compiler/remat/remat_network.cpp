#include "brrr/compiler/remat/remat_network.h"

#include <algorithm>
#include <cmath>

#include "brrr/compiler/fuse/fuse.h"
#include "brrr/compiler/remat/min_cut.h"

namespace brrr::compiler {
namespace {

// Seconds by the rules of `fuse`: a value between two nodes of one kernel never reaches memory.
class Pricing {
 public:
  Pricing(const Graph& graph, const StepParts& parts, const RematRates& rates)
      : graph_(graph), parts_(parts), rates_(rates), traffic_(graph.values.size()) {
    for (size_t n = graph.nodes.size(); n-- > 0;) {
      if (!parts.forward_nodes[n]) continue;
      for (ValueId id : graph.nodes[n].outputs) traffic_[id.index()] = traffic_of(id);
    }
  }

  CutCosts run() const {
    CutCosts costs{.again_seconds = std::vector<double>(graph_.nodes.size(), 0),
                   .keep_seconds = std::vector<double>(graph_.values.size(), 0),
                   .keep_bytes = std::vector<int64_t>(graph_.values.size(), 0),
                   .is_never_kept = std::vector<bool>(graph_.values.size(), false),
                   .is_never_again = std::vector<bool>(graph_.nodes.size(), false)};
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!parts_.forward_nodes[n]) continue;
      costs.again_seconds[n] = again_seconds(node);
      const SegmentId checkpoint = checkpoint_around(graph_, node);
      for (ValueId id : node.outputs) {
        costs.keep_seconds[id.index()] = keep_seconds(id);
        costs.keep_bytes[id.index()] = parts_.is_result[id.index()] ? 0 : bytes_of(graph_, id);
        costs.is_never_kept[id.index()] = node.op->view || is_inner(graph_, parts_, id, checkpoint);
      }
      costs.is_never_again[n] = !checkpoint.valid() && is_read_at_once(node);
    }
    return costs;
  }

 private:
  // Where a value meets memory, apart from being kept.
  struct Traffic {
    bool is_written = false;    // in the forward part
    bool is_read_late = false;  // a later part reads it from memory, kept or not
    bool has_fused_reader = false;
  };

  Traffic traffic_of(ValueId id) const {
    Traffic found{.is_written = parts_.is_result[id.index()]};
    for (NodeId reader : parts_.uses[id.index()]) {
      const Node& node = graph_.node(reader);
      const bool late = !parts_.is_forward(reader);
      if (can_fuse(graph_, graph_.node(graph_.value(id).node), node)) {
        found.has_fused_reader = true;
      } else if (late) {
        found.is_read_late = true;
      } else {
        found.is_written = true;
        if (node.op->view && is_read_late_by_view(node)) found.is_read_late = true;
      }
    }
    return found;
  }
  // Readers come behind what they read, so their own traffic is known by then.
  bool is_read_late_by_view(const Node& view) const {
    const size_t shown = view.outputs[0].index();
    return parts_.is_needed_late[shown] || traffic_[shown].is_read_late;
  }

  double keep_seconds(ValueId id) const {
    const Traffic& traffic = traffic_[id.index()];
    const double once = rates_.traffic_seconds(bytes_of(graph_, id));
    const bool adds_read = !traffic.is_read_late && traffic.has_fused_reader;
    return (traffic.is_written ? 0 : once) + (adds_read ? once : 0);
  }

  // Nobody in the forward part waits for it: to run it later costs nothing, unless it makes little of much (a
  // reduction), which would have to wait with it.
  bool only_moves(const Node& node) const {
    int64_t read = 0, made = 0;
    for (ValueId id : node.inputs) read += bytes_of(graph_, id);
    for (ValueId id : node.outputs) made += bytes_of(graph_, id);
    if (node.op->kind == OpKind::reduce && made < read) return false;
    return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      const std::vector<NodeId>& readers = parts_.uses[id.index()];
      return !parts_.is_result[id.index()] &&
             std::none_of(readers.begin(), readers.end(),
                          [&](NodeId reader) { return parts_.is_forward(reader); });
    });
  }

  // A later part reads a result before any other node runs, or while the forward part still reads it: the
  // chunks of a head (compiler/head/chunk_head.h) do. A second run would make what is there.
  bool is_read_at_once(const Node& node) const {
    return !node.op->view && std::any_of(node.outputs.begin(), node.outputs.end(),
                                         [&](ValueId id) { return is_result_read_at_once(id); });
  }
  bool is_result_read_at_once(ValueId id) const {
    Readers readers{.last_forward = graph_.value(id).node.index(),
                    .first_late = graph_.nodes.size()};
    find_readers(id, readers);
    if (readers.first_late == graph_.nodes.size()) return false;
    for (size_t n = readers.last_forward + 1; n < readers.first_late; ++n) {
      if (!graph_.nodes[n].op->view) return false;
    }
    return true;
  }

  struct Readers {
    size_t last_forward, first_late;
  };
  void find_readers(ValueId id, Readers& readers) const {
    for (NodeId reader : parts_.uses[id.index()]) {
      const Node& node = graph_.node(reader);
      if (node.op->view) {
        find_readers(node.outputs[0], readers);
      } else if (parts_.is_forward(reader)) {
        readers.last_forward = std::max(readers.last_forward, reader.index());
      } else {
        readers.first_late = std::min(readers.first_late, reader.index());
      }
    }
  }

  double again_seconds(const Node& node) const {
    if (node.op->view || only_moves(node)) return 0;
    int64_t bytes = 0;
    bool is_fused = false;
    for (ValueId id : node.inputs) {
      const NodeId maker = graph_.value(id).node;
      const bool fused = maker.valid() && can_fuse(graph_, graph_.node(maker), node);
      if (!fused || traffic_[id.index()].is_read_late) bytes += bytes_of(graph_, id);
      is_fused |= fused;
    }
    for (ValueId id : node.outputs) {
      const Traffic& traffic = traffic_[id.index()];
      if (traffic.is_read_late || !traffic.has_fused_reader) bytes += bytes_of(graph_, id);
      is_fused |= traffic.has_fused_reader;
    }
    if (!is_fused) return node_seconds(graph_, node, rates_);
    return std::max(compute_seconds(graph_, node, rates_), rates_.traffic_seconds(bytes));
  }

  const Graph& graph_;
  const StepParts& parts_;
  const RematRates& rates_;
  std::vector<Traffic> traffic_;  // by value
};

// Capacities are integers: hundredths of a nanosecond, or so much coarser that all of them together leave room below
// what is infinite.
class Ticks {
 public:
  Ticks(const CutCosts& costs, double seconds_per_byte) : seconds_per_byte_(seconds_per_byte) {
    double all = 0;  // of edges that are not infinite
    for (size_t n = 0; n < costs.again_seconds.size(); ++n)
      if (!costs.is_never_again[n]) all += costs.again_seconds[n];
    for (size_t v = 0; v < costs.keep_seconds.size(); ++v)
      if (!costs.is_never_kept[v]) all += kept_seconds(costs, v);
    a_second_ = std::min(1e11, kMostTicks / std::max(all, 1e-9));
  }
  int64_t again(const CutCosts& costs, size_t node) const {
    return std::llround(costs.again_seconds[node] * a_second_);
  }
  int64_t kept(const CutCosts& costs, size_t value) const {
    return std::llround(kept_seconds(costs, value) * a_second_);
  }

 private:
  static constexpr double kMostTicks = 1e17;
  double kept_seconds(const CutCosts& costs, size_t value) const {
    return costs.keep_seconds[value] +
           seconds_per_byte_ * static_cast<double>(costs.keep_bytes[value]);
  }
  double seconds_per_byte_, a_second_ = 0;
};

}  // namespace

CutCosts cut_costs(const Graph& graph, const StepParts& parts, const RematRates& rates) {
  return Pricing(graph, parts, rates).run();
}

NodeSet cheapest_choice(const Graph& graph, const StepParts& parts, const CutCosts& costs,
                        double seconds_per_byte) {
  const Ticks ticks(costs, seconds_per_byte);
  FlowNetwork network;
  const int source = network.add_node(), sink = network.add_node();
  std::vector<int> again(graph.nodes.size(), -1), needed(graph.values.size(), -1);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!parts.forward_nodes[n]) continue;
    const Node& node = graph.nodes[n];
    again[n] = network.add_node();
    // One tick more, so that a tie is kept.
    network.add_edge(source, again[n],
                     costs.is_never_again[n] ? FlowNetwork::kInfinite : ticks.again(costs, n) + 1);
    for (ValueId id : node.inputs) {
      const int input = needed[id.index()];
      if (input >= 0) network.add_edge(input, again[n], FlowNetwork::kInfinite);
    }
    for (ValueId id : node.outputs) {
      const size_t v = id.index();
      needed[v] = network.add_node();
      network.add_edge(again[n], needed[v],
                       costs.is_never_kept[v] ? FlowNetwork::kInfinite : ticks.kept(costs, v));
      if (parts.is_needed_late[v]) network.add_edge(needed[v], sink, FlowNetwork::kInfinite);
    }
  }
  invariant(network.min_cut(source, sink) < FlowNetwork::kInfinite,
            "rematerialize: a value may neither be kept nor made again");
  const std::vector<bool> is_no = network.source_side(source);
  NodeSet chosen(graph.nodes.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    chosen[n] = again[n] >= 0 && !is_no[static_cast<size_t>(again[n])];
  return only_asked_for(graph, parts, std::move(chosen));
}

ChoiceTotals totals_of(const Graph& graph, const StepParts& parts, const CutCosts& costs,
                       const NodeSet& again) {
  const std::vector<bool> asked = asked_late(graph, parts, again);
  ChoiceTotals totals;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!parts.forward_nodes[n]) continue;
    if (again[n]) {
      totals.seconds += costs.again_seconds[n];
      continue;
    }
    for (ValueId id : graph.nodes[n].outputs) {
      if (!asked[id.index()] || costs.is_never_kept[id.index()]) continue;
      totals.seconds += costs.keep_seconds[id.index()];
      totals.kept_bytes += costs.keep_bytes[id.index()];
    }
  }
  return totals;
}

}  // namespace brrr::compiler
