#include "brrr/compiler/fuse.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace brrr {
namespace {

// A later part of the step stays apart from the forward part: what it makes of kept values alone would be
// computed with them, and kept too. Second runs (Phase::recompute) would be undone that way.
bool leaves_forward(const Node& producer, const Node& reader) {
  return producer.phase == Phase::forward && reader.phase != Phase::forward;
}

// Regions while they grow: a union of nodes, with the regions that each reads from.
class Builder {
 public:
  Builder(const Graph& graph, const FuseOptions& options)
      : graph_(graph),
        options_(options),
        parent_(graph.nodes.size()),
        members_(graph.nodes.size()),
        visited_(graph.nodes.size(), 0) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (size_t n = 0; n < members_.size(); ++n) members_[n] = {n};
  }

  std::vector<Region> run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (options_.enabled && is_tileable(graph_, graph_.nodes[n])) join_producers(n);
    }
    return in_order();
  }

 private:
  size_t find(size_t n) {
    while (parent_[n] != n) n = parent_[n] = parent_[parent_[n]];
    return n;
  }

  // The node behind a value; views stand for what they show, so that a region may read through them.
  std::optional<size_t> maker(ValueId id) const {
    const NodeId node = graph_.value(id).node;
    return node.valid() ? std::optional<size_t>(node.index()) : std::nullopt;
  }

  void join_producers(size_t n) {
    const Node& node = graph_.nodes[n];
    for (ValueId input : node.inputs) {
      const std::optional<size_t> producer = maker(input);
      if (!producer || leaves_forward(graph_.nodes[*producer], node)) continue;
      if (!can_fuse(graph_, graph_.nodes[*producer], node)) continue;
      const size_t a = find(*producer), b = find(n);
      if (a != b && fits(a, b) && !depends_through_others(a, b)) merge(a, b);
    }
  }

  bool fits(size_t a, size_t b) {
    if (static_cast<int>(members_[a].size() + members_[b].size()) > options_.max_nodes)
      return false;
    std::set<int32_t> inside, operands;
    for (size_t region : {a, b}) {
      for (size_t n : members_[region]) {
        for (ValueId id : graph_.nodes[n].outputs) inside.insert(id.value);
      }
    }
    for (size_t region : {a, b}) {
      for (size_t n : members_[region]) {
        for (ValueId id : graph_.nodes[n].inputs) {
          if (!inside.count(id.value)) operands.insert(id.value);
        }
      }
    }
    return static_cast<int>(operands.size()) + 4 <= options_.max_operands;
  }

  // Merging a into b would make a circle where b also reads a by way of a third region.
  bool depends_through_others(size_t a, size_t b) {
    ++round_;
    std::vector<size_t> pending;
    const auto visit_inputs = [&](size_t region, bool from_b) {
      for (size_t n : members_[region]) {
        for (ValueId input : graph_.nodes[n].inputs) {
          const std::optional<size_t> producer = maker(input);
          if (!producer) continue;
          const size_t next = find(*producer);
          if (next == b || next == region || visited_[next] == round_) continue;
          if (next == a && from_b) continue;  // the direct edge that the merge removes
          visited_[next] = round_;
          pending.push_back(next);
        }
      }
    };
    visit_inputs(b, true);
    while (!pending.empty()) {
      const size_t region = pending.back();
      pending.pop_back();
      if (region == a) return true;
      visit_inputs(region, false);
    }
    return false;
  }

  void merge(size_t a, size_t b) {
    parent_[a] = b;
    members_[b].insert(members_[b].end(), members_[a].begin(), members_[a].end());
    members_[a].clear();
  }

  // Depth first from the nodes in their old order: everything that a region reads runs before it.
  std::vector<Region> in_order() {
    std::vector<Region> regions;
    std::vector<char> state(graph_.nodes.size(), 0);  // 1: being visited, 2: done
    for (size_t n = 0; n < graph_.nodes.size(); ++n) emit(find(n), state, regions);
    return regions;
  }

  void emit(size_t root, std::vector<char>& state, std::vector<Region>& regions) {
    struct Frame {
      size_t region;
      std::vector<size_t> reads;
      size_t next = 0;
    };
    if (state[root] != 0) return;
    std::vector<Frame> stack;
    const auto enter = [&](size_t region) {
      state[region] = 1;
      stack.push_back({region, regions_read(region)});
    };
    enter(root);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.reads.size()) {
        const size_t read = frame.reads[frame.next++];
        invariant(state[read] != 1, "fuse: regions depend on each other in a circle");
        if (state[read] == 0) enter(read);
        continue;
      }
      state[frame.region] = 2;
      std::vector<size_t>& nodes = members_[frame.region];
      std::sort(nodes.begin(), nodes.end());
      Region region;
      for (size_t n : nodes) region.nodes.emplace_back(n);
      regions.push_back(std::move(region));
      stack.pop_back();
    }
  }

  std::vector<size_t> regions_read(size_t region) {
    std::vector<size_t> reads;
    for (size_t n : members_[region]) {
      for (ValueId input : graph_.nodes[n].inputs) {
        if (const std::optional<size_t> producer = maker(input)) {
          const size_t read = find(*producer);
          if (read != region) reads.push_back(read);
        }
      }
    }
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    return reads;
  }

  const Graph& graph_;
  const FuseOptions& options_;
  std::vector<size_t> parent_;
  std::vector<std::vector<size_t>> members_;  // by root
  std::vector<int> visited_;
  int round_ = 0;
};

}  // namespace

bool is_tileable(const Graph& graph, const Node& node) {
  const auto packed = [&](ValueId id) { return is_packed(graph.type(id).dtype); };
  if (std::any_of(node.inputs.begin(), node.inputs.end(), packed) || packed(node.outputs[0]))
    return false;
  return node.op->tiles != nullptr || node.op->name == "cast" || node.op->name == "copy";
}

bool can_fuse(const Graph& graph, const Node& producer, const Node& reader) {
  return is_tileable(graph, producer) && is_tileable(graph, reader) &&
         graph.type(producer.outputs[0]).shape == graph.type(reader.outputs[0]).shape;
}

std::vector<Region> fuse(const Graph& graph, const FuseOptions& options) {
  return Builder(graph, options).run();
}

}  // namespace brrr
