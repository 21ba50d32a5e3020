// The fastest choice whose memory plan fits a budget.
//
// A price for every byte kept turns the budget into a minimum cut: the higher the price, the less is kept.
// Identical layers flip at the same price, so behind the two neighbouring cuts with the budget between
// them the layers switch one by one, those first that give most bytes of planned peak for a second.
#pragma once

#include <functional>

#include "brrr/base/units.h"
#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/lower/plan_memory.h"
#include "brrr/compiler/remat/remat_network.h"

namespace brrr::compiler {

// A graph as it will run: fused, lowered, its memory planned.
struct PlannedGraph {
  KernelList kernels;
  MemoryPlan memory;
};
using GraphPlanner = std::function<PlannedGraph(const Graph&)>;

struct BudgetProblem {
  const Graph& graph;
  const StepParts& parts;
  const CutCosts& costs;
  const GraphPlanner& planner;
};

// Throws Error with the smallest arena that was found, and what fills it, when that is too large.
NodeSet fit_budget(const BudgetProblem& problem, Bytes budget);

// Every outermost segment runs again from its inputs, everything else is kept.
NodeSet choice_by_segment(const Graph& graph, const StepParts& parts);

}  // namespace brrr::compiler
