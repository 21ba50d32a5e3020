// The graph in which chosen forward nodes run again in the backward part.
#pragma once

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/remat/remat_values.h"

namespace brrr::compiler {

// Later parts read the results of second runs (phase `recompute`), each placed right before its first
// reader, operands first: as late as possible, since nodes run in the order of the graph and what lives
// longer takes memory longer. A first run whose results nobody reads any more is dropped.
Graph run_again(const Graph& graph, const StepParts& parts, const NodeSet& again);

}  // namespace brrr::compiler
