// What would make a step faster, each with the seconds it would save, computed by pricing the changed
// program or the changed machine again. Nothing is guessed: a change that saves nothing says so.
#pragma once

#include <string>
#include <vector>

#include "brrr/cost/predict.h"
#include "brrr/runtime/stages.h"

namespace brrr::plan {

struct Counterfactual {
  std::string change;        // "fusing linear [256, 3072] into gelu [256, 3072] (12 times)"
  double saves_seconds = 0;  // of the predicted step
};

struct Advice {
  double predicted_seconds = 0;
  double share[3] = {};                 // of the predicted time, by Regime
  std::vector<Counterfactual> fusions;  // the best first
  std::vector<Counterfactual>
      resources;  // bf16 if planned, twice the bandwidth, twice the FLOP/s, no overhead
};

struct AdviceOptions {
  int fusions = 3;           // at most so many
  double least_part = 1e-3;  // of the step: smaller savings are not worth a line
  const runtime::PlannedProgram* in_bf16 =
      nullptr;  // the same step in mixed precision, where it can be planned
};
Advice advise(const compiler::KernelList& list, const compiler::MemoryPlan& plan,
              const hardware::Rates& rates, const AdviceOptions& options = {});

// "62 % of the predicted time is bandwidth-bound: ..."
std::string to_text(const Advice& advice);

// The program in which kernel `producer` runs as part of kernel `consumer`: what passes between them and
// nobody else reads stays in the caches, and one call is gone.
compiler::KernelList merge_kernels(const compiler::KernelList& list, size_t producer,
                                   size_t consumer);

}  // namespace brrr::plan
