// What a number of devices can compute in a number of days, beside runs that are known, and the model and token
// count that use it best.
#pragma once

#include <string_view>
#include <vector>

namespace brrr::plan {

struct KnownRun {
  std::string_view name;
  double flops;
  std::string_view source;
};
// Runs and legal thresholds, ascending.
const std::vector<KnownRun>& known_runs();

struct ComputeOptimal {
  double parameters = 0, tokens = 0;
};
// Chinchilla's rule of thumb: 20 tokens a parameter, so C = 6 N 20 N.
ComputeOptimal compute_optimal(double flops, double tokens_per_parameter = 20);

}  // namespace brrr::plan
