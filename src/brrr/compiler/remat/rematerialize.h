// Which forward values are kept for the backward part, and which are computed again there. Losses and
// gradients keep their bits: the same ops run on the same values, only once more.
//
//   remat_values    what crosses from the forward part to the backward part
//   remat_cost      seconds of running a node again
//   remat_network   the choice as a minimum cut, at a price per byte kept
//   remat_rewrite   the graph of a choice
//   remat_budget    the price at which the memory plan fits
#pragma once

#include <optional>
#include <string_view>

#include "brrr/base/units.h"
#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/remat/remat_budget.h"

namespace brrr::compiler {

enum class RematPolicy : uint8_t {
  none,       // everything that the backward part reads is kept, checkpoint() or not
  selective,  // contractions are kept, and as few bytes as possible of what lies between them
  full,       // every outermost segment (a layer, a checkpoint) runs again from its inputs
  budget      // as fast as possible within the budget; without one, as fast as possible
};
std::string_view policy_name(RematPolicy policy);
// "none", "selective", "full", "budget"; throws Error with the list on any other name.
RematPolicy parse_policy(std::string_view name);

struct RematOptions {
  RematPolicy policy = RematPolicy::budget;
  // For the arena: all that the step holds at its fullest instant besides inputs, states and outputs.
  std::optional<Bytes> memory_budget;
  RematRates rates;
};

// `planner` is asked only where there is a budget. Throws Error when no choice fits.
Graph rematerialize(const Graph& graph, const RematOptions& options, const GraphPlanner& planner);

}  // namespace brrr::compiler
