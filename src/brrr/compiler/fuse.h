// Which nodes run as one kernel. Elementwise nodes over the same shape join their neighbours, so that
// values between them stay in the L1 cache; every other node is a region of its own, views are none.
#pragma once

#include "brrr/graph/graph.h"

namespace brrr {

// Nodes in their old order; regions in an order in which they can run.
struct Region {
  std::vector<NodeId> nodes;
};

struct FuseOptions {
  bool enabled = true;
  int max_nodes = 48;     // a longer chain gains nothing more and needs more buffers
  int max_operands = 24;  // inputs and outputs of one kernel
};

// True when the node can be a step of a tile program: it has tile functions, or is a cast.
bool is_tileable(const Graph& graph, const Node& node);

// True when `reader`, which reads a result of `producer`, may run in the same kernel, so that the value
// between them never reaches memory; supposed that both run in the same part of the step.
bool can_fuse(const Graph& graph, const Node& producer, const Node& reader);

std::vector<Region> fuse(const Graph& graph, const FuseOptions& options = {});

}  // namespace brrr
