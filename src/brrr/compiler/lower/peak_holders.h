// What fills the arena at the fullest instant of a plan.
#pragma once

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/remat/remat_budget.h"

namespace brrr::compiler {

struct PeakHolder {
  std::string name;  // of the value, with its type; "scratch of matmul" for a workspace
  int64_t bytes = 0;
};
struct PeakInstant {
  size_t kernel = 0;                // which one runs then
  int64_t live_bytes = 0;           // of buffers; the arena may be larger, where they leave gaps
  std::vector<PeakHolder> holders;  // the largest first
};
PeakInstant find_peak(const Graph& graph, const PlannedGraph& planned);

// "At its fullest, while matmul (backward) runs, it holds ...": the largest `count`, with their bytes.
std::string describe_peak(const Graph& graph, const PlannedGraph& planned, int count);

}  // namespace brrr::compiler
