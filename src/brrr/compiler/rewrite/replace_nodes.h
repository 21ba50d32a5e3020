// Writes a graph anew with single nodes, or a few, in place of several.
#pragma once

#include <functional>

#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {

// Adds a node to the new graph and returns its results.
using AddNode =
    std::function<ValueIds(const OpDef& op, const ValueIds& inputs, const Attrs& attrs)>;

// A node that gives values which others gave.
struct Replacement {
  // It stands before this node: its inputs are there by then, its results not read before.
  size_t at;
  NodeId place;  // whose phase, scope and segment it has
  const OpDef* op = nullptr;
  Attrs attrs = {};
  ValueIds inputs = {};   // of the old graph
  ValueIds results = {};  // of the old graph, by output; each is the result of one replacement only
  int transposed = -1;    // which input is a matrix to be read transposed
  // In place of one node of `op`, where there are several: adds them, and returns what stands for the results.
  // The inputs are those of the new graph.
  std::function<ValueIds(const AddNode& add, const ValueIds& inputs)> write = nullptr;
};

// Nodes whose results nobody reads any more are gone.
Graph replace_nodes(const Graph& graph, const std::vector<Replacement>& replacements);

}  // namespace brrr::compiler
