// Writes a graph anew with single nodes in place of several.
#pragma once

#include "brrr/graph/graph.h"

namespace brrr {

// A node that gives values which others gave.
struct Replacement {
  size_t
      at;  // it stands before this node: its inputs are there by then, its results not read before
  NodeId place;  // whose phase, scope and segment it has
  const OpDef* op;
  Attrs attrs;
  ValueIds inputs;      // of the old graph
  ValueIds results;     // of the old graph, by output; each is the result of one replacement only
  int transposed = -1;  // which input is a matrix to be read transposed
};

// Nodes whose results nobody reads any more are gone.
Graph replace_nodes(const Graph& graph, const std::vector<Replacement>& replacements);

}  // namespace brrr
