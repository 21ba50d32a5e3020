#include "brrr/compiler/region_set.h"

#include <algorithm>
#include <numeric>

namespace brrr {

RegionSet::RegionSet(const Graph& graph)
    : graph_(graph),
      parent_(graph.nodes.size()),
      members_(graph.nodes.size()),
      first_(graph.nodes.size()),
      last_(graph.nodes.size()),
      visited_(graph.nodes.size(), 0) {
  for (auto* each : {&parent_, &first_, &last_}) std::iota(each->begin(), each->end(), 0);
  for (size_t n = 0; n < members_.size(); ++n) members_[n] = {n};
}

size_t RegionSet::find(size_t node) {
  while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
  return node;
}

void RegionSet::merge(size_t a, size_t into) {
  parent_[a] = into;
  members_[into].insert(members_[into].end(), members_[a].begin(), members_[a].end());
  members_[a].clear();
  first_[into] = std::min(first_[into], first_[a]);
  last_[into] = std::max(last_[into], last_[a]);
}

std::optional<size_t> RegionSet::maker(ValueId id) const {
  const NodeId node = graph_.value(id).node;
  return node.valid() ? std::optional<size_t>(node.index()) : std::nullopt;
}

std::optional<size_t> RegionSet::true_maker(ValueId id) const {
  return maker(behind_reshapes(graph_, id));
}

// Nodes are in an order in which they can run, so what ends before a begins cannot have read it.
bool RegionSet::depends_through_others(size_t a, size_t b) {
  ++round_;
  std::vector<size_t> pending;
  const auto visit_inputs = [&](size_t region, bool from_b) {
    for (size_t n : members_[region]) {
      for (ValueId input : graph_.nodes[n].inputs) {
        const std::optional<size_t> producer = true_maker(input);
        if (!producer) continue;
        const size_t next = find(*producer);
        if (next == b || next == region || visited_[next] == round_) continue;
        if (last_[next] < first_[a]) continue;
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

// Depth first from the nodes in their old order: everything that a region reads comes before it.
std::vector<size_t> RegionSet::in_order() {
  std::vector<size_t> order;
  std::vector<char> state(graph_.nodes.size(), 0);  // 1: being visited, 2: done
  for (size_t n = 0; n < graph_.nodes.size(); ++n) emit(find(n), state, order);
  return order;
}

void RegionSet::emit(size_t root, std::vector<char>& state, std::vector<size_t>& order) {
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
    order.push_back(frame.region);
    stack.pop_back();
  }
}

std::vector<size_t> RegionSet::regions_read(size_t region) {
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

}  // namespace brrr
