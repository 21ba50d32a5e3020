#include "brrr/plan/cluster/planned_optimizer.h"

#include "brrr/base/error.h"
#include "brrr/ops/create/creation.h"
#include "brrr/optim/registry.h"

namespace brrr::plan {
namespace {

// Adafactor keeps a row and a column of a matrix in place of a second moment, and no first one: next to nothing.
constexpr PlannedOptimizer kOfOtherSystems[] = {
    {.name = "adamw8bit", .rule = "adamw", .state_share = 1.0 / 4},
    {.name = "adamw-bf16", .rule = "adamw", .state_share = 1.0 / 2, .has_master = false},
    {.name = "adafactor", .rule = "adamw", .state_share = 0.0025}};

}  // namespace

PlannedOptimizer planned_optimizer(std::string_view name) {
  if (const OptimizerEntry* entry = find_optimizer(name))
    return {.name = entry->name, .rule = entry->name, .whole_matrices = entry->whole_matrices};
  for (const PlannedOptimizer& other : kOfOtherSystems) {
    if (other.name == name) return other;
  }
  fail("there is no optimizer \"", name, "\"; use one of ", planned_optimizer_names());
}

std::string planned_optimizer_names() {
  std::string names;
  for (const OptimizerEntry* entry : optimizer_entries())
    names += join_text(names.empty() ? "" : ", ", entry->name);
  for (const PlannedOptimizer& other : kOfOtherSystems) names += join_text(", ", other.name);
  return names;
}

double matrix_state_bytes(const PlannedOptimizer& optimizer) {
  constexpr int64_t kSide = 64;
  const NamedTensor matrix{"h.0.weight", empty({kSide, kSide}, DType::f32, Device::null())};
  const auto rule = make_optimizer(optimizer.rule, {matrix});
  return optimizer.state_share * static_cast<double>(rule->state_bytes_of(0).value()) /
         static_cast<double>(matrix.tensor.numel());
}

}  // namespace brrr::plan
