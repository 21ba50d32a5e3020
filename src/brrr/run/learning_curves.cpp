#include "brrr/run/learning_curves.h"

#include <algorithm>
#include <cmath>

namespace brrr::runs {

std::vector<EvaluationPoint> evaluation_points(const RunLog& run) {
  std::vector<EvaluationPoint> points;
  double sum = 0, count = 0;  // of the losses of steps since the last evaluation
  for (const StepRecord& record : run.steps) {
    if (std::isfinite(record.loss)) {
      sum += record.loss;
      count += 1;
    }
    if (!record.validation_loss || !std::isfinite(*record.validation_loss)) continue;
    const double train = record.train_loss ? *record.train_loss : count > 0 ? sum / count : NAN;
    if (std::isfinite(train))
      points.push_back(
          {.step = record.step, .train = train, .validation = *record.validation_loss});
    sum = count = 0;
  }
  return points;
}

std::vector<double> smoothed(std::span<const double> ys) {
  std::vector<double> result(ys.begin(), ys.end());
  if (ys.size() < 3) return result;
  const size_t last = ys.size() - 1;
  result[0] = (2 * ys[0] + ys[1]) / 3;
  result[last] = (2 * ys[last] + ys[last - 1]) / 3;
  for (size_t i = 1; i < last; ++i) result[i] = (ys[i - 1] + 2 * ys[i] + ys[i + 1]) / 4;
  return result;
}

double noise_of(std::span<const double> ys) {
  std::vector<double> bends;
  for (size_t i = 1; i + 1 < ys.size(); ++i)
    bends.push_back(std::abs(ys[i - 1] - 2 * ys[i] + ys[i + 1]));
  if (bends.empty()) return 0;
  const auto middle = bends.begin() + static_cast<std::ptrdiff_t>(bends.size() / 2);
  std::nth_element(bends.begin(), middle, bends.end());
  constexpr double kMedianOfNormal = 0.6745;  // of |x| for x of unit variance
  return *middle / kMedianOfNormal / std::sqrt(6.0);
}

std::vector<double> running_mean(std::span<const double> ys, double half_life) {
  const double keep = std::exp2(-1 / half_life);
  std::vector<double> result;
  result.reserve(ys.size());
  double sum = 0, weight = 0;
  for (double y : ys) {
    if (std::isfinite(y)) {
      sum = keep * sum + y;
      weight = keep * weight + 1;
    }
    result.push_back(weight > 0 ? sum / weight : NAN);
  }
  return result;
}

}  // namespace brrr::runs
