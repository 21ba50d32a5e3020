// Ops that have no kernel on a device become what they are composed of, before anything is fused: what is
// left has a kernel, or is elementwise and becomes part of a generated one.
#pragma once

#include "brrr/graph/graph.h"

namespace brrr {

// True when a node runs on a GPU as it is.
bool runs_on_cuda(const Node& node);

Graph expand_for_cuda(const Graph& graph, Device device);

}  // namespace brrr
