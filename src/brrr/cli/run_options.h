// The options that describe a training run to the planner, shared by the commands that plan.
#pragma once

#include <optional>

#include "brrr/cli/napkin.h"

namespace brrr::cli {

struct RunOptions {
  ModelChoice model;
  GpuChoice gpu;
  RunQuestion base;  // sizes, layout and prices
  double tokens = 0;
  std::optional<double> mfu, peak_tflops;
  std::string precision = "bf16", recompute = "none", convention = "exact", grads = "bf16",
              attention = "current", framework = "tuned";
  bool no_sequence_parallel = false, unfused = false;

  // Everything together; throws Error on words that are none.
  RunQuestion question() const;
  RunQuestion without_model() const;
};
void add_run_options(CLI::App& command, RunOptions& options);

}  // namespace brrr::cli
