// The update of a training step: the graph of the optimizer's own arithmetic, priced kernel by kernel, for the share of
// the parameters that one device updates.
//
//   bytes of a parameter   2 g (clipping, and the update) + 2 (master + states) + the low copy that is written;
//                          without a master 2 g + 2 p + 2 states. g is f32 in the graph: 34 for AdamW in mixed precision
//   Muon                   beside them five Newton-Schulz steps a matrix, 5 (4 n^2 m + 2 n^3) FLOPs for n <= m
//
// Optimizers that brrr does not have move bytes and hardly compute: they are priced as a relative that it has, by the
// ratio of their bytes.
#include <fmt/format.h>

#include "brrr/napkin/pipeline_stages.h"

namespace brrr {
namespace {

// `relative` is the optimizer whose graph there is, and `graph` the name that brrr makes it by.
struct UpdateRule {
  std::string_view name, relative, graph;
};

UpdateRule rule_of(std::string_view name) {
  constexpr UpdateRule kOthers[] = {{"momentum", "momentum", "sgd"},
                                    {"sgd", "momentum", "sgd"},
                                    {"adamw8bit", "adamw", "adamw"},
                                    {"adamw-bf16", "adamw", "adamw"},
                                    {"adafactor", "adamw", "adamw"}};
  for (const UpdateRule& rule : kOthers) {
    if (rule.name == name) return rule;
  }
  return {name, name, name};
}

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

double update_bytes(Precision precision, std::string_view optimizer) {
  constexpr double kGradBytes = 4;
  const StateRecipe r = state_recipe(precision, optimizer, GradType::as_parameter);
  const double parameter = r.master > 0 ? 2 * r.master + r.params : 2 * r.params;
  return 2 * kGradBytes + parameter + 2 * r.optimizer;
}

std::string update_graph(std::string_view optimizer) {
  state_recipe(Precision::f32, optimizer, GradType::as_parameter);  // refuses what is none
  return std::string(rule_of(optimizer).graph);
}

double update_seconds(const RunQuestion& q, const RunCost& cost, int64_t dp) {
  const StepCost& held = cost.updated;
  const double ratio = update_bytes(q.precision, q.optimizer) /
                       update_bytes(q.precision, rule_of(q.optimizer).relative);
  return held.update_seconds * ratio * updated_share(q, held, dp);
}

std::string update_assumption(const RunQuestion& q, const RunCost& cost, int64_t dp) {
  const StepCost& held = cost.updated;
  const UpdateRule rule = rule_of(q.optimizer);
  return fmt::format(
      "update by {}: {:.0f} bytes of each of {:.3g} parameters of a device{}{}", q.optimizer,
      update_bytes(q.precision, q.optimizer), held.parameters() * updated_share(q, held, dp),
      rule.relative == q.optimizer
          ? ""
          : join_text(", priced by that ratio from the graph of ", rule.relative),
      q.optimizer == "muon" ? "; Newton-Schulz products of whole matrices, shared out among the "
                              "devices that have them"
                            : "");
}

}  // namespace brrr
