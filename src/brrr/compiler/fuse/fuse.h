// Which nodes run as one kernel. Elementwise nodes over the same shape join their neighbours, so that
// values between them stay in the L1 cache. Such a group then joins the reduction, norm or contraction
// that makes one of its operands (its epilogue) or reads one of its results (its prologue), whichever
// saves more traffic. Every other node is a region of its own; views are none.
#pragma once

#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {

// Elementwise nodes at one operand of a core.
struct Attached {
  std::vector<NodeId> nodes;
  int operand = -1;  // of the core: an input of a prologue, an output of an epilogue
  ValueId value;     // what a prologue hands over; what an epilogue reads it as
  bool is_used() const { return operand >= 0; }
};

// Nodes in their old order; regions in an order in which they can run.
struct Region {
  std::vector<NodeId> nodes;  // all, with the views between core and attached nodes
  NodeId core;                // none: an elementwise program, or one node alone
  Attached prologue, epilogue;
};

// Which operands the kernel of a node takes from, or gives to, what is fused to it.
using StreamsOf = Streams (*)(const Graph& graph, const Node& node);
Streams declared_streams(const Graph& graph, const Node& node);  // as its op says, for the CPU

struct FuseOptions {
  bool enabled = true;
  int max_nodes = 48;     // a longer chain gains nothing more and needs more buffers
  int max_operands = 24;  // inputs and outputs of one kernel
  int max_numbers = 24;   // the same of a kernel over one element, as sums of many numbers are
  StreamsOf streams = declared_streams;
};

// True when the node can be a step of a tile program: it has tile functions, or is a cast.
bool is_tileable(const Graph& graph, const Node& node);

// A later part of the step stays apart from the forward part: what it makes of kept values alone would be
// computed with them, and kept too. Second runs (Phase::recompute) would be undone that way.
bool leaves_forward(const Node& producer, const Node& reader);

// The value behind views that keep the order of all elements (a reshape of a contiguous tensor).
ValueId behind_reshapes(const Graph& graph, ValueId id);
// True when `reader`, which reads a result of `producer`, joins it in one elementwise program, so that the
// value between them never reaches memory; supposed that both run in the same part of the step. What is
// attached to cores is left out: there a value may be stored all the same, for others.
bool can_fuse(const Graph& graph, const Node& producer, const Node& reader);

std::vector<Region> fuse(const Graph& graph, const FuseOptions& options = {});

}  // namespace brrr::compiler
