// The update of a training step: the graph of the optimizer's own arithmetic, priced kernel by kernel, for the share of
// the parameters that one device updates.
//
//   bytes of a parameter   2 g (clipping, and the update) + 2 (master + states) + the low copy that is written;
//                          without a master 2 g + 2 p + 2 states. g is f32 in the graph: 34 for AdamW in mixed precision
//   Muon                   beside them five Newton-Schulz steps a matrix, 5 (4 n^2 m + 2 n^3) FLOPs for n <= m
//
// Optimizers that brrr does not have move bytes and hardly compute: they are priced as the registered one whose state
// they keep in fewer bytes (plan/cluster/planned_optimizer.h), by the ratio of all bytes.
#include <fmt/format.h>

#include "brrr/plan/cluster/pipeline_stages.h"
#include "brrr/plan/cluster/planned_optimizer.h"

namespace brrr::plan {
namespace {

// The share of all parameters that one device updates. ZeRO shares states out over the devices that have the same
// parameters; without it each of them updates all that it holds, and experts are cut by ep alone.
double updated_share(const RunQuestion& q, const StepCost& total, int64_t dp) {
  const ParallelLayout& l = q.layout;
  const double held = q.model ? largest_stage_share(shape_of(*q.model).layers, l) : 1;
  if (l.zero > 0) return held / static_cast<double>(dp * l.cp);
  const double experts = total.experts / total.parameters();
  return (1 - experts + experts / static_cast<double>(l.ep)) * held;
}

}  // namespace

double update_bytes(compiler::Precision precision, std::string_view optimizer) {
  constexpr double kGradBytes = 4;
  const StateRecipe r = state_recipe(precision, optimizer, GradType::as_parameter);
  const double parameter = r.master > 0 ? 2 * r.master + r.params : 2 * r.params;
  return 2 * kGradBytes + parameter + 2 * r.optimizer;
}

double update_seconds(const RunQuestion& q, const RunCost& cost, int64_t dp) {
  const StepCost& held = cost.updated;
  const double ratio = update_bytes(q.precision, q.optimizer) /
                       update_bytes(q.precision, planned_optimizer(q.optimizer).rule);
  return held.update_seconds * ratio * updated_share(q, held, dp);
}

std::string update_assumption(const RunQuestion& q, const RunCost& cost, int64_t dp) {
  const StepCost& held = cost.updated;
  const PlannedOptimizer optimizer = planned_optimizer(q.optimizer);
  return fmt::format(
      "update by {}: {:.0f} bytes of each of {:.3g} parameters of a device{}{}", q.optimizer,
      update_bytes(q.precision, q.optimizer), held.parameters() * updated_share(q, held, dp),
      optimizer.rule == optimizer.name
          ? ""
          : join_text(", priced by that ratio from the graph of ", optimizer.rule),
      optimizer.whole_matrices.empty()
          ? ""
          : join_text("; ", optimizer.whole_matrices,
                      " of whole matrices, shared out among the devices that have them"));
}

}  // namespace brrr::plan
