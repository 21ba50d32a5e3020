// The way from a graph to a program, arrow by arrow, without memory and without a device: what
// `brrr explain` shows, and what predictions are made from.
#pragma once

#include "brrr/hardware/rates.h"
#include "brrr/runtime/executable.h"

namespace brrr::runtime {

// A step of the way that ends in a graph, under the name that people ask for it by.
struct GraphStage {
  std::string_view name, what;
};
// In the order in which they run.
std::vector<GraphStage> graph_stages();  // of all backends, in order

struct PlannedProgram {
  struct StageGraph {
    std::string_view stage;
    graph::Graph graph;
  };
  std::vector<StageGraph> graphs;  // behind each stage that ran
  compiler::KernelList kernels;
  compiler::MemoryPlan plan;

  const graph::Graph& graph() const { return graphs.back().graph; }  // the one that was lowered
  const graph::Graph* find(std::string_view stage) const;            // nullptr: it was left out
};

// `joint` is the whole step: forward, backward, update.
PlannedProgram plan_program(graph::Graph joint, const compiler::PipelineOptions& options = {});

// What the choice between keeping and computing again needs to know of a machine.
compiler::RematRates remat_rates(const hardware::Rates& rates);

// The graph with the gradient of its first output, one float, added for every float state as further
// outputs. For graphs read from text; a traced step has its backward part already.
graph::Graph differentiate(const graph::Graph& forward);
bool has_backward(const graph::Graph& graph);

}  // namespace brrr::runtime
