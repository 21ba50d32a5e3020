// The options that describe a training run to the planner, shared by the commands that plan.
#pragma once

#include <optional>

#include "brrr/cli/napkin/napkin.h"

namespace brrr::cli {

struct RunOptions {
  ModelChoice model;
  GpuChoice gpu;
  plan::RunQuestion base;  // sizes, layout and prices
  double tokens = 0;
  std::optional<double> mfu, peak_tflops;
  std::string precision = "bf16", recompute = "auto", convention = "exact", grads = "bf16",
              attention = "current", framework = "brrr";
  bool no_sequence_parallel = false, unfused = false;

  // Everything together; throws Error on words that are none.
  plan::RunQuestion question() const;
  plan::RunQuestion without_model() const;
};
void add_run_options(CLI::App& command, RunOptions& options);

// Throw Error with the rule: for sizes that no run has, and for options that another one takes the effect from.
void check_run_sizes(const RunOptions& options);
void check_effects(const CLI::App& command, const RunOptions& options);
// Options that are right and change nothing at this size of a run, one sentence each.
std::vector<std::string> notes_on_effects(const CLI::App& command, const plan::RunAnswer& answer);

}  // namespace brrr::cli
