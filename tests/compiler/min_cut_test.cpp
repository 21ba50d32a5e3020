#include "brrr/compiler/remat/min_cut.h"

#include <gtest/gtest.h>

#include <random>

namespace brrr {
namespace {

struct Edge {
  int from, to;
  int64_t capacity;
};

// Every way to divide the nodes, tried one after another. Node 0 is the source, the last the sink.
int64_t cheapest_by_trying(int nodes, const std::vector<Edge>& edges) {
  int64_t best = INT64_MAX;
  for (uint32_t side = 0; side < (1U << nodes); ++side) {
    const auto on_source_side = [&](int node) { return (side >> node & 1U) != 0; };
    if (!on_source_side(0) || on_source_side(nodes - 1)) continue;
    int64_t crossing = 0;
    for (const Edge& edge : edges) {
      if (on_source_side(edge.from) && !on_source_side(edge.to)) crossing += edge.capacity;
    }
    best = std::min(best, crossing);
  }
  return best;
}

TEST(MinCut, EqualsTryingAllCuts) {
  std::mt19937 generator(3);
  for (int round = 0; round < 300; ++round) {
    const int nodes = 2 + static_cast<int>(generator() % 9);
    std::vector<Edge> edges;
    compiler::FlowNetwork network;
    for (int i = 0; i < nodes; ++i) network.add_node();
    for (unsigned i = 0; i < generator() % 30; ++i) {
      const Edge edge{static_cast<int>(generator() % static_cast<unsigned>(nodes)),
                      static_cast<int>(generator() % static_cast<unsigned>(nodes)),
                      static_cast<int64_t>(generator() % 20)};
      edges.push_back(edge);
      network.add_edge(edge.from, edge.to, edge.capacity);
    }
    const int64_t expected = cheapest_by_trying(nodes, edges);
    ASSERT_EQ(network.min_cut(0, nodes - 1), expected) << "round " << round;
    // The sides it names cost what it says.
    const std::vector<bool> side = network.source_side(0);
    ASSERT_FALSE(side[static_cast<size_t>(nodes - 1)]);
    int64_t crossing = 0;
    for (const Edge& edge : edges) {
      if (side[static_cast<size_t>(edge.from)] && !side[static_cast<size_t>(edge.to)])
        crossing += edge.capacity;
    }
    ASSERT_EQ(crossing, expected);
  }
}

TEST(MinCut, KnowsWhatCannotBeCut) {
  compiler::FlowNetwork network;
  for (int i = 0; i < 3; ++i) network.add_node();
  network.add_edge(0, 1, compiler::FlowNetwork::kInfinite);
  network.add_edge(1, 2, compiler::FlowNetwork::kInfinite);
  EXPECT_GE(network.min_cut(0, 2), compiler::FlowNetwork::kInfinite);
}

TEST(MinCut, DeepChains) {
  compiler::FlowNetwork network;
  constexpr int kNodes = 50000;
  for (int i = 0; i < kNodes; ++i) network.add_node();
  for (int i = 0; i + 1 < kNodes; ++i) network.add_edge(i, i + 1, i == 777 ? 3 : 10);
  EXPECT_EQ(network.min_cut(0, kNodes - 1), 3);
}

}  // namespace
}  // namespace brrr
