// Where results of kernels lie that write rows apart (LowerOptions::strided_outputs). A result that would only be copied into
// another order lies in that order at once, and parts that would only be put together lie in the whole: attention's heads
// become rows of the next product, and dq, dk and dv rows of one gradient, without a copy.
#pragma once

#include <map>

#include "brrr/compiler/fuse/fuse.h"
#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {

struct Landing {
  ValueId whole;  // in whose buffer it lies: that of a concat, or its own
  Layout layout;  // there
};

struct Landings {
  std::map<ValueId, Landing> of_results;
  std::vector<bool>
      is_joined;  // by node: a concat whose parts all land in it, which needs no kernel
};

// Results of the graph and new states lie in order in buffers of their own.
Landings find_landings(const Graph& graph, const std::vector<Region>& regions,
                       uint32_t (*strided_outputs)(const OpDef& op));

}  // namespace brrr::compiler
