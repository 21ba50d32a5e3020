#include "brrr/compiler/fuse/region_set.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <set>

namespace brrr::compiler {

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

// Of the regions whose operands are there, the one that began first in the old order. A region that waits
// for a late operand holds nobody up: were it to pull that operand forward, everything on the way to it
// would run first, and all that the regions between them read would be held.
int RegionSet::inputs_of(std::initializer_list<size_t> regions) const {
  std::set<int32_t> made, read;
  for (size_t region : regions) {
    for (size_t n : members_[region]) {
      for (ValueId id : graph_.nodes[n].outputs) made.insert(id.value);
    }
  }
  for (size_t region : regions) {
    for (size_t n : members_[region]) {
      for (ValueId id : graph_.nodes[n].inputs) {
        if (!made.count(id.value)) read.insert(id.value);
      }
    }
  }
  return static_cast<int>(read.size());
}

std::vector<size_t> RegionSet::in_order() {
  std::vector<std::vector<size_t>> readers(graph_.nodes.size());  // by root, as what follows
  std::vector<size_t> missing(graph_.nodes.size(), 0);
  const auto begins_later = [&](size_t a, size_t b) { return first_[a] > first_[b]; };
  std::priority_queue<size_t, std::vector<size_t>, decltype(begins_later)> ready(begins_later);
  size_t regions = 0;
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (!is_root(n)) continue;
    ++regions;
    const std::vector<size_t> reads = regions_read(n);
    for (size_t read : reads) readers[read].push_back(n);
    missing[n] = reads.size();
    if (reads.empty()) ready.push(n);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (size_t reader : readers[order.back()]) {
      if (--missing[reader] == 0) ready.push(reader);
    }
  }
  invariant(order.size() == regions, "fuse: regions depend on each other in a circle");
  write_states_late(order);
  return order;
}

// A new state takes the old one's place only where nobody reads the old one any more. The product that
// makes a weight's gradient, with the update behind it, stands before the product that reads the weight
// for the gradient of its input; the first would leave all new weights in the arena until the end.
void RegionSet::write_states_late(std::vector<size_t>& order) {
  std::vector<size_t> position(graph_.nodes.size(), 0);  // by root
  for (size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  const std::vector<std::vector<NodeId>> uses = graph::uses_of(graph_);
  for (const StateSlot& state : graph_.states) {
    const std::optional<size_t> made = state.is_written() ? true_maker(state.after) : std::nullopt;
    if (!made) continue;
    const size_t writer = find(*made), from = position[writer];
    size_t to = from;
    for (size_t reader : readers_of(state.before, uses)) {
      // What a product of the backward pass reads is not held until the updates.
      if (is_update(reader) && !is_update(writer)) continue;
      to = std::max(to, position[reader]);
    }
    const auto reads_writer = [&](size_t region) {
      const std::vector<size_t> reads = regions_read(region);
      return std::binary_search(reads.begin(), reads.end(), writer);
    };
    const auto begin = order.begin() + static_cast<std::ptrdiff_t>(from),
               end = order.begin() + static_cast<std::ptrdiff_t>(to) + 1;
    if (std::any_of(begin + 1, end, reads_writer)) continue;
    std::rotate(begin, begin + 1, end);
    for (size_t i = from; i <= to; ++i) position[order[i]] = i;
  }
}

std::vector<size_t> RegionSet::readers_of(ValueId id,
                                          const std::vector<std::vector<NodeId>>& uses) {
  std::vector<size_t> readers, pending{id.index()};
  while (!pending.empty()) {
    const size_t value = pending.back();
    pending.pop_back();
    for (NodeId user : uses[value]) {
      readers.push_back(find(user.index()));
      if (graph_.node(user).op->view) pending.push_back(graph_.node(user).outputs[0].index());
    }
  }
  return readers;
}

bool RegionSet::is_update(size_t region) const {
  return std::all_of(members_[region].begin(), members_[region].end(),
                     [&](size_t n) { return graph_.nodes[n].phase == Phase::update; });
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

}  // namespace brrr::compiler
