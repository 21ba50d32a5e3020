// The way from a graph to a program, arrow by arrow, without memory and without a device: what
// `brrr explain` shows, and what predictions are made from.
#pragma once

#include "brrr/runtime/executable.h"

namespace brrr {

// A pass from graph to graph under the name that people ask for it by.
struct GraphStage {
  std::string_view name, what;
  Graph (*run)(const Graph& before, const PipelineOptions& options);
};
// In the order in which they run.
std::span<const GraphStage> graph_stages();

struct PlannedProgram {
  std::vector<Graph> graphs;  // behind each stage
  KernelList kernels;
  MemoryPlan plan;

  const Graph& graph() const { return graphs.back(); }  // the one that was lowered
};

// `joint` is the whole step: forward, backward, update.
PlannedProgram plan_program(Graph joint, const PipelineOptions& options = {});

// The graph with the gradient of its first output, one float, added for every float state as further
// outputs. For graphs read from text; a traced step has its backward part already.
Graph differentiate(const Graph& forward);
bool has_backward(const Graph& graph);

}  // namespace brrr
