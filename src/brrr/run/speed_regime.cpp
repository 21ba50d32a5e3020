#include "brrr/run/speed_regime.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <span>

namespace brrr::runs {
namespace {

constexpr std::array kRegimeNames{"compute", "bandwidth", "overhead"};
constexpr double kNotable = 1.25;  // a factor that noise of the machine seldom reaches
constexpr size_t kLastSteps = 20;

double median(std::vector<double> values) {
  if (values.empty()) return NAN;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Seconds of the steps from `first` on; the first step of all compiles and is left out.
std::vector<double> step_seconds(const RunLog& run, size_t first) {
  std::vector<double> seconds;
  for (size_t i = std::max<size_t>(first, 1); i < run.steps.size(); ++i) {
    if (std::isfinite(run.steps[i].ms)) seconds.push_back(run.steps[i].ms / 1e3);
  }
  return seconds;
}

void add_shares(const RunFacts& facts, SpeedRegime& regime) {
  double total = 0;
  for (const KernelFact& kernel : facts.kernels) total += kernel.seconds;
  for (const KernelFact& kernel : facts.kernels) {
    for (size_t r = 0; r < kRegimeNames.size(); ++r) {
      if (total > 0 && kernel.regime == kRegimeNames[r]) regime.share[r] += kernel.seconds / total;
    }
  }
}

std::string sentence(std::string text) {
  if (text.empty()) return text;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  if (text.back() != '.') text += '.';
  return text;
}

std::string measured_text(const SpeedRegime& regime) {
  std::string text =
      fmt::format("A step takes {}, {} tokens a second", to_text(Seconds(regime.step_seconds)),
                  with_commas(std::llround(regime.tokens_per_second)));
  if (regime.mfu > 0) text += fmt::format(", MFU {:.1f} %", 100 * regime.mfu);
  if (regime.predicted_step_seconds > 0) {
    const double ratio = regime.step_seconds / regime.predicted_step_seconds;
    text += fmt::format("; predicted were {} (measured is {:.2f} of it)",
                        to_text(Seconds(regime.predicted_step_seconds)), ratio);
  }
  return text + ".";
}

}  // namespace

SpeedRegime judge_speed(const RunLog& run) {
  SpeedRegime regime;
  regime.predicted_step_seconds = run.facts.predicted_step_seconds;
  add_shares(run.facts, regime);
  regime.what = run.facts.speed_regime.empty()
                    ? "What bounds the speed was not predicted for this run."
                    : sentence(run.facts.speed_regime);
  if (!run.facts.speed_advice.empty()) regime.next.push_back(run.facts.speed_advice);

  regime.step_seconds = median(step_seconds(run, 0));
  if (!std::isfinite(regime.step_seconds)) {
    regime.why = "There are too few steps to measure.";
    return regime;
  }
  std::vector<double> rates, utilisations;
  for (const StepRecord& record : run.steps) {
    if (std::isfinite(record.tokens_per_second)) rates.push_back(record.tokens_per_second);
    if (record.mfu && std::isfinite(*record.mfu)) utilisations.push_back(*record.mfu);
  }
  if (!utilisations.empty()) regime.mfu = median(utilisations);
  regime.tokens_per_second = median(rates);
  const size_t last = run.steps.size() > kLastSteps ? run.steps.size() - kLastSteps : 0;
  regime.slowdown = median(step_seconds(run, last)) / regime.step_seconds;
  regime.why = measured_text(regime);
  if (regime.slowdown > kNotable) {
    regime.next.push_back(
        fmt::format("the last steps took {:.1f} times the median: see what else runs on this "
                    "machine, and whether it "
                    "is hot and slows its clock",
                    regime.slowdown));
  }
  if (regime.predicted_step_seconds > 0 &&
      regime.step_seconds > kNotable * regime.predicted_step_seconds)
    regime.next.emplace_back(
        "steps take longer than predicted: run `brrr calibrate` on the idle machine, then `brrr "
        "profile`");
  return regime;
}

std::string to_text(const SpeedRegime& regime) {
  std::string text = regime.what + "\n" + regime.why + "\n";
  if (!regime.next.empty()) text += "Next:\n";
  for (const std::string& step : regime.next) text += "  - " + step + "\n";
  return text;
}

}  // namespace brrr::runs
