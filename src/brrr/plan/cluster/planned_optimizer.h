// The optimizers that a plan can be about: those in the registry, and a few of other systems, each of which keeps the
// state of a registered one in fewer bytes.
#pragma once

#include <string>
#include <string_view>

namespace brrr::plan {

struct PlannedOptimizer {
  std::string_view name, rule;  // `rule`: the registered optimizer whose graph is its update
  double state_share = 1;       // bytes of its state over those of the rule's
  bool has_master = true;       // false: parameters in 16 bits have no copy in f32
  std::string_view whole_matrices = {};  // as in OptimizerEntry
};

// Throws Error with all names on an unknown one.
PlannedOptimizer planned_optimizer(std::string_view name);
std::string planned_optimizer_names();

// Bytes that the optimizer keeps for each parameter of a matrix between hidden layers, in f32: what the registered rule
// says of such a matrix on the null device, times the share.
double matrix_state_bytes(const PlannedOptimizer& optimizer);

}  // namespace brrr::plan
