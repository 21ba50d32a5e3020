// The cheapest way to cut a network in two: maximum flow by Dinic's algorithm.
#pragma once

#include <cstdint>
#include <vector>

namespace brrr::compiler {

class FlowNetwork {
 public:
  static constexpr int64_t kInfinite = INT64_MAX / 4;  // an edge that no cut may cross

  int add_node();
  int nodes() const { return static_cast<int>(first_.size()); }
  void add_edge(int from, int to, int64_t capacity);

  // The value of the cheapest cut between source and sink; kInfinite or more when every cut crosses an
  // edge that must not be crossed. Call it once.
  int64_t min_cut(int source, int sink);
  // Behind it: which nodes lie on the source's side of the cut that is closest to the source.
  std::vector<bool> source_side(int source) const;

 private:
  struct Edge {
    int to;
    int64_t left;  // capacity not used yet
  };
  bool find_levels(int source, int sink);
  int64_t push(int source, int sink);

  std::vector<Edge> edges_;              // edge 2i and its reverse 2i + 1
  std::vector<std::vector<int>> first_;  // by node: its edges
  std::vector<int> level_, next_;
};

}  // namespace brrr::compiler
