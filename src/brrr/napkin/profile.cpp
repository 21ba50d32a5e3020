#include "brrr/napkin/profile.h"

#include <algorithm>
#include <chrono>
#include <map>

namespace brrr {
namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double>& all) {
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

void add_to(ProfileRow& row, const KernelProfile& kernel) {
  ++row.calls;
  row.flops += kernel.flops;
  row.bytes += kernel.bytes;
  row.seconds += kernel.seconds;
  row.predicted += kernel.predicted.seconds();
  row.roof += kernel.roof_seconds;
  row.in_regime[static_cast<size_t>(kernel.predicted.regime())] += kernel.predicted.seconds();
}

template <typename Name>
std::vector<ProfileRow> group(const Profile& profile, const Name& name) {
  std::map<std::string, size_t> places;
  std::vector<ProfileRow> rows;
  for (const KernelProfile& kernel : profile.kernels) {
    const auto [found, is_new] = places.emplace(name(kernel), rows.size());
    if (is_new) rows.push_back({.label = found->first});
    add_to(rows[found->second], kernel);
  }
  return rows;
}

std::vector<ProfileRow> longest_first(std::vector<ProfileRow> rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
  return rows;
}

// "mul+mul+mul+add+add x 76" becomes "mul+mul+mul+..2 more x 76".
std::string shortened(const std::string& name) {
  constexpr size_t kMostNamed = 4;
  const size_t end = std::min(name.find(' '), name.size());
  const auto ops = static_cast<size_t>(
      1 + std::count(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(end), '+'));
  if (ops <= kMostNamed) return name;
  size_t kept = 0;
  for (size_t i = 0; i + 1 < kMostNamed; ++i) kept = name.find('+', kept) + 1;
  return join_text(name.substr(0, kept), "..", ops - kMostNamed + 1, " more", name.substr(end));
}

}  // namespace

std::string kernel_label(const Kernel& kernel) {
  const bool is_group = !kernel.members.empty() || (!kernel.op && !kernel.program);
  std::string name = shortened(kernel.name);
  // Those of a group have shapes of their own.
  if (is_group || kernel.outputs.empty()) return name;
  return join_text(name, " ", kernel.outputs[0].layout.shape);
}

StepTimes measure_steps(Executable& program, std::span<const Tensor> inputs,
                        const MeasureOptions& options) {
  check(options.steps >= 1, "profile: ", options.steps, " steps; use at least one");
  StepTimes times;
  program.run(inputs);
  program.wait();
  std::vector<std::vector<double>> by_kernel(program.kernels().kernels.size());
  std::vector<double> whole;
  for (int i = 0; i < options.steps; ++i) {
    if (options.between) options.between();
    program.run_timed(inputs, times.last);
    for (size_t k = 0; k < by_kernel.size(); ++k) by_kernel[k].push_back(times.last.seconds[k]);
    const Clock::time_point start = Clock::now();
    program.run(inputs);
    program.wait();
    whole.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  for (std::vector<double>& seconds : by_kernel) times.kernel_seconds.push_back(median(seconds));
  times.step_seconds = median(whole);
  return times;
}

Profile make_profile(const KernelList& list, const MemoryPlan& plan, const StepTimes& times,
                     const Rates& rates) {
  invariant(times.kernel_seconds.size() == list.kernels.size(), "a profile of ",
            list.kernels.size(), " kernels needs as many times, not ", times.kernel_seconds.size());
  const Prediction prediction = predict(list, plan, rates);
  const double peak = rates.number("peak.f32");
  Profile profile{.kernels = {},
                  .step_seconds = times.step_seconds,
                  .predicted_seconds = prediction.seconds(),
                  .calibrated = rates.calibrated,
                  .rates_source = rates.source};
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    const Kernel& kernel = list.kernels[k];
    const KernelPrediction& price = prediction.kernels[k];
    profile.kernels.push_back(
        {.label = kernel_label(kernel),
         .kernel_class = class_of(kernel),
         .phase = kernel.phase,
         .flops = kernel.cost.flops,
         .bytes = kernel.cost.bytes_read + kernel.cost.bytes_written,
         .seconds = times.kernel_seconds[k],
         .begin = times.last.begin[k],
         .measured_once = times.last.seconds[k],
         .predicted = price,
         .roof_seconds = std::max(static_cast<double>(kernel.cost.flops) / peak, price.memory)});
    profile.kernel_seconds += times.kernel_seconds[k];
  }
  return profile;
}

Regime ProfileRow::regime() const {
  const auto* largest = std::max_element(std::begin(in_regime), std::end(in_regime));
  return static_cast<Regime>(largest - std::begin(in_regime));
}

std::vector<ProfileRow> rows_by_label(const Profile& profile) {
  return longest_first(group(profile, [](const KernelProfile& kernel) { return kernel.label; }));
}

std::vector<ProfileRow> rows_by_class(const Profile& profile) {
  return longest_first(group(profile, [](const KernelProfile& kernel) {
    return std::string(class_name(kernel.kernel_class));
  }));
}

std::vector<ProfileRow> rows_by_regime(const Profile& profile) {
  std::vector<ProfileRow> rows(kRegimes);
  for (int r = 0; r < kRegimes; ++r)
    rows[static_cast<size_t>(r)].label = regime_name(static_cast<Regime>(r));
  for (const KernelProfile& kernel : profile.kernels)
    add_to(rows[static_cast<size_t>(kernel.predicted.regime())], kernel);
  return rows;
}

std::vector<ProfileRow> rows_by_phase(const Profile& profile) {
  return group(profile,
               [](const KernelProfile& kernel) { return std::string(phase_name(kernel.phase)); });
}

}  // namespace brrr
