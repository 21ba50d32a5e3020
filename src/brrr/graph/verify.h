// What a legal graph is. Runs after every pass, so that a wrong rewrite is caught where it happens.
#pragma once

#include "brrr/graph/graph.h"

namespace brrr::graph {

// Throws InternalError, naming `after` (the pass that made the graph) and the offending node, unless
//   - every node reads only values that exist by then: inputs, states, results of nodes before it
//   - every value is made exactly once, by the node it names, or is an input or a state
//   - every node's results have the types that its op infers from its operands
//   - a state keeps its type when it is written, and outputs and seeds name existing values
//   - a state that is a cast of another has its shape, and is written where that one is
//   - the body of a node is legal itself and fits the operands
void verify(const Graph& graph, std::string_view after);

}  // namespace brrr::graph
