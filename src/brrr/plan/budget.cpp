#include "brrr/plan/budget.h"

#include <cmath>

#include "brrr/base/error.h"

namespace brrr::plan {

const std::vector<KnownRun>& known_runs() {
  static const std::vector<KnownRun> kRuns = {
      {"GPT-2 1558M, 10B tokens (llm.c)", 1.0e20, "6 N D"},
      {"GPT-3 175B", 3.14e23, "Brown et al. 2020"},
      {"Llama-2 70B", 8.28e23, "6 x 69e9 x 2e12"},
      {"PaLM 540B", 2.53e24, "Chowdhery et al. 2022"},
      {"DeepSeek-V3", 3.29e24, "6 x 37e9 x 14.8e12"},
      {"EU AI Act, systemic risk", 1e25, "Regulation (EU) 2024/1689, Art. 51"},
      {"GPT-4, speculated", 2e25, "unconfirmed"},
      {"Llama-3.1 405B", 3.8e25, "Grattafiori et al. 2024"},
      {"US reporting threshold, revoked 2025", 1e26, "Executive Order 14110"},
  };
  return kRuns;
}

ComputeOptimal compute_optimal(double flops, double tokens_per_parameter) {
  check(flops > 0, "a budget of ", flops, " FLOPs buys nothing");
  check(tokens_per_parameter > 0, tokens_per_parameter, " tokens a parameter make no sense");
  const double parameters = std::sqrt(flops / (6 * tokens_per_parameter));
  return {.parameters = parameters, .tokens = tokens_per_parameter * parameters};
}

}  // namespace brrr::plan
