#include "brrr/compiler/remat/min_cut.h"

#include <algorithm>

#include "brrr/base/error.h"

namespace brrr::compiler {

int FlowNetwork::add_node() {
  first_.emplace_back();
  return nodes() - 1;
}

void FlowNetwork::add_edge(int from, int to, int64_t capacity) {
  invariant(capacity >= 0, "a capacity of ", capacity);
  first_[static_cast<size_t>(from)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, std::min(capacity, kInfinite)});
  first_[static_cast<size_t>(to)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

// Distances from the source over edges with room left; false when the sink is out of reach.
bool FlowNetwork::find_levels(int source, int sink) {
  level_.assign(first_.size(), -1);
  level_[static_cast<size_t>(source)] = 0;
  std::vector<int> queue{source};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (int e : first_[static_cast<size_t>(queue[i])]) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      int& level = level_[static_cast<size_t>(edge.to)];
      if (edge.left == 0 || level >= 0) continue;
      level = level_[static_cast<size_t>(queue[i])] + 1;
      queue.push_back(edge.to);
    }
  }
  return level_[static_cast<size_t>(sink)] >= 0;
}

// One augmenting path along rising levels, found without recursion: graphs are thousands of nodes deep.
int64_t FlowNetwork::push(int source, int sink) {
  std::vector<int> path;  // edges
  int node = source;
  while (node != sink) {
    int& next = next_[static_cast<size_t>(node)];
    const std::vector<int>& out = first_[static_cast<size_t>(node)];
    bool advanced = false;
    for (; next < static_cast<int>(out.size()); ++next) {
      const int e = out[static_cast<size_t>(next)];
      const Edge& edge = edges_[static_cast<size_t>(e)];
      const bool rises =
          level_[static_cast<size_t>(edge.to)] == level_[static_cast<size_t>(node)] + 1;
      if (edge.left == 0 || !rises) continue;
      path.push_back(e);
      node = edge.to;
      advanced = true;
      break;
    }
    if (advanced) continue;
    if (path.empty()) return 0;
    level_[static_cast<size_t>(node)] = -1;  // a dead end
    node = edges_[static_cast<size_t>(path.back() ^ 1)].to;
    path.pop_back();
  }
  int64_t room = kInfinite;
  for (int e : path) room = std::min(room, edges_[static_cast<size_t>(e)].left);
  for (int e : path) {
    edges_[static_cast<size_t>(e)].left -= room;
    edges_[static_cast<size_t>(e ^ 1)].left += room;
  }
  return room;
}

int64_t FlowNetwork::min_cut(int source, int sink) {
  int64_t total = 0;
  while (total < kInfinite && find_levels(source, sink)) {
    next_.assign(first_.size(), 0);
    while (const int64_t more = push(source, sink)) {
      total += more;
      if (total >= kInfinite) return total;
    }
  }
  return total;
}

std::vector<bool> FlowNetwork::source_side(int source) const {
  std::vector<bool> reached(first_.size(), false);
  reached[static_cast<size_t>(source)] = true;
  std::vector<int> queue{source};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (int e : first_[static_cast<size_t>(queue[i])]) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      if (edge.left == 0 || reached[static_cast<size_t>(edge.to)]) continue;
      reached[static_cast<size_t>(edge.to)] = true;
      queue.push_back(edge.to);
    }
  }
  return reached;
}

}  // namespace brrr::compiler
