// The losses of a run as curves that can be judged: evaluation points, smoothed, with their noise.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "brrr/run/run_log.h"

namespace brrr::runs {

struct EvaluationPoint {
  int64_t step = 0;
  double train = 0, validation = 0;
};

// Every evaluation with a finite validation loss. Where a run did not evaluate on training data, `train` is
// the mean over the steps since the evaluation before.
std::vector<EvaluationPoint> evaluation_points(const RunLog& run);

// Weights 1 2 1 over neighbours, at the ends 2 1: 0.6 of the noise is left, and a curve that bends moves by a
// quarter of its second difference.
std::vector<double> smoothed(std::span<const double> ys);

// The standard deviation of the noise on a curve that is itself smooth: second differences of white noise
// have 6 times its variance. By their median, so that the steep beginning of a curve does not count.
double noise_of(std::span<const double> ys);

// Mean of the values before with weights that fall by half every `half_life` values; NaN is passed over.
std::vector<double> running_mean(std::span<const double> ys, double half_life);

}  // namespace brrr::runs
