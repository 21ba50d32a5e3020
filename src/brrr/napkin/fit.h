// Inverse questions: how large, how long, how few, how cheap. Every layout that the devices allow is tried with
// every way to compute again, the best that fits wins, and the runner-up and what binds are named.
#pragma once

#include <functional>

#include "brrr/napkin/run_question.h"

namespace brrr {

struct FitPlan {
  double value =
      0;  // what was asked for: parameters, tokens of context, sequences, devices or dollars
  RunAnswer answer;
};

struct FitResult {
  std::optional<FitPlan> best, runner_up;
  std::string binding;  // what keeps the best from being better
  int64_t tried = 0;    // plans
};

// Parameters that fit when states alone count and are cut evenly: memory of all / bytes a parameter.
double largest_model_by_states(const RunQuestion& question);

// The largest model of Llama's proportions (width 128 a layer, heads of 128) that fits with its activations.
FitResult largest_model(const RunQuestion& question);
FitResult longest_context(const RunQuestion& question);
FitResult largest_batch(const RunQuestion& question);  // micro-batch
FitResult fewest_devices(const RunQuestion& question, int64_t most = 65536);
// The fewest dollars (or GPU-hours, without a price) that end within `days`.
FitResult cheapest_plan(const RunQuestion& question, double days, int64_t most = 65536);

// Layouts of question.count devices that this model can be cut into.
std::vector<RunQuestion> possible_plans(const RunQuestion& question);

}  // namespace brrr
