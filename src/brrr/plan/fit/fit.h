// Inverse questions: how large, how long, how few, how cheap. The plans of fit_space.h are weighed, the best that
// fits wins, and the runner-up and what binds are named. Plans that are told are answers of `answer`.
#pragma once

#include "brrr/plan/cluster/run_question.h"

namespace brrr::plan {

struct FitPlan {
  double value =
      0;  // what was asked for: parameters, tokens of context, sequences, devices or dollars
  RunAnswer answer;
};

struct FitResult {
  std::optional<FitPlan> best, runner_up;  // the runner-up has another layout
  std::string binding;  // what keeps the best from being better; of none, what it misses by
  std::string step;     // how fine the answer is
  int64_t tried = 0;    // plans
};

constexpr int64_t kMostFitDevices = 65536;

// Parameters that fit when states alone count and are cut evenly: memory of all / bytes a parameter.
double largest_model_by_states(const RunQuestion& question);

// The largest model of Llama's proportions (width 128 a layer, heads of 128, keys of their own) that fits on
// question.count devices with its activations.
FitResult largest_model(const RunQuestion& question);
// On question.count devices, too.
FitResult longest_context(const RunQuestion& question);
FitResult largest_batch(const RunQuestion& question);  // micro-batch
// On `most` devices or fewer.
FitResult fewest_devices(const RunQuestion& question, int64_t most = kMostFitDevices);
// The fewest dollars (or GPU-hours, without a price) that end within `days`. Where no global batch is given, dp is
// 1, 3, 5, 7, 9 or 15 times a power of two and leaves steps as long as a run chooses by itself.
FitResult cheapest_plan(const RunQuestion& question, double days, int64_t most = kMostFitDevices);

}  // namespace brrr::plan
