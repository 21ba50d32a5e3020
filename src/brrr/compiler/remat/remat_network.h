// The choice between keeping and running again, as a minimum cut.
//
// Two questions for every forward value v that node n makes, each with a side of the cut:
//   x_v   is v needed in the backward part?
//   y_n   does n run again there?
// and what the answers cost:
//   y_n           the seconds of n
//   x_v, not y_n  v is kept: its traffic, and its bytes at a price in seconds per byte
//   y_n, not x_u  impossible where n reads u
// With "yes" on the side of the sink these are edges source -> y_n -> x_v and x_u -> y_n, and x_v -> sink
// where a later part reads v.
#pragma once

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/remat/remat_values.h"

namespace brrr::compiler {

// What each answer costs.
struct CutCosts {
  std::vector<double> again_seconds;  // by node
  std::vector<double> keep_seconds;   // by value: traffic that is there only because it is kept
  std::vector<int64_t> keep_bytes;    // by value; 0 where it is alive anyway
  std::vector<bool> is_never_kept;    // by value: views, and inner values of checkpoint()
  std::vector<bool> is_never_again;   // by node
};
CutCosts cut_costs(const Graph& graph, const StepParts& parts, const RematRates& rates);

// The nodes that run again in the cheapest choice; where two are equally cheap, the one that keeps more.
NodeSet cheapest_choice(const Graph& graph, const StepParts& parts, const CutCosts& costs,
                        double seconds_per_byte);

// A choice in the two coins that a price exchanges.
struct ChoiceTotals {
  double seconds = 0;
  int64_t kept_bytes = 0;
};
ChoiceTotals totals_of(const Graph& graph, const StepParts& parts, const CutCosts& costs,
                       const NodeSet& again);

}  // namespace brrr::compiler
