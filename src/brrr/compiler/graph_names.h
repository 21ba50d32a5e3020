// Passes speak of graphs, nodes and values all the time, so the compiler has these names as its own.
#pragma once

#include "brrr/graph/graph.h"
#include "brrr/graph/repeat.h"

namespace brrr::compiler {

using graph::Graph;
using graph::GraphInput;
using graph::Node;
using graph::NodeId;
using graph::Phase;
using graph::RepeatNode;
using graph::SegmentId;
using graph::StateSlot;
using graph::Value;
using graph::ValueId;
using graph::ValueIds;

}  // namespace brrr::compiler
