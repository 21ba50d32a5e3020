#include "brrr/compiler/remat/rematerialize.h"

#include <algorithm>
#include <array>

#include "brrr/base/join_names.h"
#include "brrr/compiler/remat/remat_rewrite.h"

namespace brrr::compiler {
namespace {

constexpr std::array kPolicies{RematPolicy::none, RematPolicy::selective, RematPolicy::full,
                               RematPolicy::budget};

// So many seconds for a byte that no arithmetic between two contractions is worth it.
constexpr double kByteAboveAll = 1e-6;

NodeSet selective_choice(const Graph& graph, const StepParts& parts, CutCosts costs) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op->kind == OpKind::contraction && !checkpoint_around(graph, node).valid())
      costs.is_never_again[n] = true;
  }
  return cheapest_choice(graph, parts, costs, kByteAboveAll);
}

// Bodies of repeats are graphs of their own, and have been through this pass already.
bool has_bodies(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.body != nullptr; });
}

}  // namespace

std::string_view policy_name(RematPolicy policy) {
  switch (policy) {
    case RematPolicy::none: return "none";
    case RematPolicy::selective: return "selective";
    case RematPolicy::full: return "full";
    case RematPolicy::budget: return "budget";
  }
  return "unknown";
}

RematPolicy parse_policy(std::string_view name) {
  for (RematPolicy policy : kPolicies) {
    if (policy_name(policy) == name) return policy;
  }
  fail("there is no recomputation policy named \"", name, "\"; use one of ",
       join_names(kPolicies, policy_name));
}

Graph rematerialize(const Graph& graph, const RematOptions& options, const GraphPlanner& planner) {
  check(!options.memory_budget || options.policy == RematPolicy::budget,
        "a memory budget goes with the recomputation policy \"budget\", not with \"",
        policy_name(options.policy), "\"; leave one of them out");
  const StepParts parts(graph);
  const bool is_limited = options.memory_budget.has_value();
  if (options.policy == RematPolicy::none || (!parts.has_crossings && !is_limited)) return graph;
  const CutCosts costs = cut_costs(graph, parts, options.rates);
  NodeSet again;
  if (options.policy == RematPolicy::selective) {
    again = selective_choice(graph, parts, costs);
  } else if (options.policy == RematPolicy::full) {
    if (graph.segments.empty() && has_bodies(graph)) return graph;  // the layers are in there
    check(!graph.segments.empty(),
          "full recomputation runs layers again, and this program has none; ",
          "mark them with checkpoint(fn) or SegmentScope, or use another policy");
    again = choice_by_segment(graph, parts);
  } else if (is_limited) {
    again = fit_budget({graph, parts, costs, planner}, *options.memory_budget);
  } else {
    again = cheapest_choice(graph, parts, costs, 0);
  }
  return run_again(graph, parts, again);
}

}  // namespace brrr::compiler
