#include "brrr/train/guard.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "brrr/io/atomic_file.h"
#include "brrr/io/safetensors.h"
#include "brrr/run/checkpoint.h"

namespace brrr::training {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr size_t kLeastSeen = 50;  // steps before which there is no telling
// Losses of a run that has settled may hardly differ, and norms are clipped anyway: what is this near to
// the mean is no spike.
constexpr double kLossFloor = 0.02, kNormFloor = 0.5;  // standard deviations, as parts of the mean
constexpr int64_t kNewLevel = 10;  // spikes in a row that are no spike but the new level
constexpr int64_t kMostLost = 25;  // updates lost in a row to NaN before a run is hopeless

double limit_of(const std::deque<double>& seen, double z, double floor) {
  if (seen.size() < kLeastSeen) return kNoLimit;
  double mean = 0, squares = 0;
  for (const double value : seen) mean += value / static_cast<double>(seen.size());
  for (const double value : seen) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(seen.size() - 1));
  return mean + z * std::max(deviation, floor * std::abs(mean));
}

void push(std::deque<double>& values, double value, int64_t window) {
  values.push_back(value);
  while (static_cast<int64_t>(values.size()) > window) values.pop_front();
}

nlohmann::json json_number(double value) {
  if (std::isfinite(value)) return value;
  return fmt::format("{}", value);
}

}  // namespace

StepLimits SpikeGuard::spike_limits(int64_t under_way) const {
  const auto too_new = static_cast<size_t>(kStepsAhead - under_way);
  if (history_.limits.size() <= too_new) return {};
  return history_.limits[history_.limits.size() - 1 - too_new];
}

StepLimits SpikeGuard::step_limits(const StepLimits& spikes) const {
  return config_.action == runs::GuardAction::warn ? StepLimits{} : spikes;
}

void SpikeGuard::remember_limits() {
  history_.limits.push_back({.loss = limit_of(history_.losses, config_.z, kLossFloor),
                             .grad_norm = limit_of(history_.grad_norms, config_.z, kNormFloor)});
  if (history_.limits.size() > kStepsAhead + 1) history_.limits.pop_front();
}

void SpikeGuard::remember(const StepResult& result) {
  push(history_.losses, result.loss, config_.window);
  push(history_.grad_norms, result.grad_norm, config_.window);
}

GuardVerdict SpikeGuard::judge(const StepResult& result, const StepLimits& spikes) {
  const bool is_good = std::isfinite(result.loss) && std::isfinite(result.grad_norm) &&
                       result.loss <= spikes.loss && result.grad_norm <= spikes.grad_norm;
  GuardVerdict verdict;
  if (is_good) {
    remember(result);
    history_.skipped_in_a_row = 0;
  } else {
    verdict = verdict_on_bad(result, spikes);
  }
  remember_limits();
  return verdict;
}

GuardVerdict SpikeGuard::verdict_on_bad(const StepResult& result, const StepLimits& spikes) {
  const bool is_number = std::isfinite(result.loss) && std::isfinite(result.grad_norm);
  GuardVerdict verdict;
  if (!is_number) {
    verdict.words = fmt::format("loss {:.4g}, gradient norm {:.4g}: not a number", result.loss,
                                result.grad_norm);
  } else if (result.loss > spikes.loss) {
    verdict.words = fmt::format("loss spike ({:.4g}, limit {:.4g})", result.loss, spikes.loss);
  } else {
    verdict.words = fmt::format("gradient spike (norm {:.4g}, limit {:.4g})", result.grad_norm,
                                spikes.grad_norm);
  }
  history_.skipped_in_a_row += result.applied ? 0 : 1;
  const bool hopeless = !is_number && history_.skipped_in_a_row >= kMostLost;
  verdict.stops = halts() || hopeless;
  verdict.words += verdict.stops    ? ": stopped before the update"
                   : result.applied ? ": applied"
                                    : ": skipped";
  if (hopeless) verdict.words += fmt::format(", the {}th in a row", kMostLost);
  if (is_number && result.applied) remember(result);
  if (is_number && history_.skipped_in_a_row >= kNewLevel) {  // learn the new level
    history_.losses.clear();
    history_.grad_norms.clear();
    history_.skipped_in_a_row = 0;
  }
  return verdict;
}

std::filesystem::path save_bad_step(const std::filesystem::path& run_folder, const BadStep& bad) {
  const std::filesystem::path folder = run_folder / "guard" / runs::checkpoint_name(bad.step);
  std::filesystem::create_directories(folder);
  std::vector<NamedTensor> batch{{"inputs", bad.batch.inputs}, {"targets", bad.batch.targets}};
  if (bad.batch.documents.defined()) batch.push_back({"documents", bad.batch.documents});
  save_safetensors(folder / "batch.safetensors", batch);

  nlohmann::ordered_json norms, activations;
  for (size_t i = 0; i < bad.parameters.size(); ++i)
    norms[bad.parameters[i].name] = json_number(bad.result.grad_norms[i]);
  for (size_t i = 0; i < bad.result.activations.size(); ++i)
    activations[bad.activation_names[i]] = json_number(bad.result.activations[i]);
  const nlohmann::ordered_json report{{"step", bad.step},
                                      {"what", bad.words},
                                      {"applied", bad.result.applied},
                                      {"loss", json_number(bad.result.loss)},
                                      {"loss_limit", json_number(bad.limits.loss)},
                                      {"grad_norm", json_number(bad.result.grad_norm)},
                                      {"grad_norm_limit", json_number(bad.limits.grad_norm)},
                                      {"grad_norms", norms},
                                      {"largest_activations", activations}};
  write_file_atomically(folder / "report.json", report.dump(1) + "\n");
  return folder;
}

}  // namespace brrr::training
