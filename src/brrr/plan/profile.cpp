#include "brrr/plan/profile.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "brrr/device/cuda/runtime.h"

namespace brrr::plan {
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
  const std::optional<kernels::TensorCoreUse>& use = kernel.tensor_cores;
  if (use && (!row.tensor_cores || row.tensor_cores->how < use->how)) row.tensor_cores = use;
}

// Whole steps as training runs them: inputs from where they are, results on their way to the host.
class WholeSteps {
 public:
  explicit WholeSteps(runtime::Executable& program) : program_(program) {
    if (program.device().is_accelerator()) stream_ = cuda::stream(program.device().index);
  }

  void run(std::span<const Tensor> inputs) {
    const Clock::time_point start = Clock::now();
    if (stream_) {
      program_.enqueue(inputs).take();
    } else {
      program_.run(inputs);
    }
    whole_.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    if (stream_) run_behind_another(inputs);
  }

  // Two steps that nobody waits for. While a GPU runs them the host launches what comes next, so that clocks
  // around short kernels show the kernels and not the host.
  void keep_device_busy(std::span<const Tensor> inputs) {
    for (int i = 0; stream_ && i < 2; ++i) program_.run(inputs);
  }

  bool is_gpu() const { return stream_ != nullptr; }
  double step_seconds() { return median(whole_); }
  double device_seconds() { return median(device_); }

 private:
  // The host has enqueued all of a step while the one before it runs: between its first and its last event the
  // GPU waits for nobody.
  void run_behind_another(std::span<const Tensor> inputs) {
    cuda::Event begin, end;
    runtime::PendingResults first = program_.enqueue(inputs);
    begin.record(stream_);
    runtime::PendingResults second = program_.enqueue(inputs);
    end.record(stream_);
    first.take();
    second.take();
    end.wait();
    device_.push_back(cuda::seconds_between(begin, end));
  }

  runtime::Executable& program_;
  cuda::Stream stream_ = nullptr;
  std::vector<double> whole_, device_;
};

// The median of each over the steps; copies come in the same order in all of them.
std::vector<runtime::HostCopy> median_copies(
    const std::vector<std::vector<runtime::HostCopy>>& by_step) {
  std::vector<runtime::HostCopy> copies = by_step.front();
  for (size_t c = 0; c < copies.size(); ++c) {
    std::vector<double> seconds;
    for (const std::vector<runtime::HostCopy>& step : by_step) seconds.push_back(step[c].seconds);
    copies[c].seconds = median(seconds);
  }
  return copies;
}

GpuStepTimes gpu_times(const runtime::Executable& program, WholeSteps& steps,
                       const std::vector<std::vector<runtime::HostCopy>>& copies) {
  const cuda::DeviceFacts& facts = cuda::device_facts(program.device().index);
  return {.generation = {facts.major, facts.minor},
          .device_seconds = steps.device_seconds(),
          .copies = median_copies(copies),
          .launches = program.launches_of_last_run()};
}

// Empty where one of them has no rate.
std::vector<double> predict_copies(const std::vector<runtime::HostCopy>& copies,
                                   const hardware::Rates& rates) {
  std::vector<double> seconds;
  for (const runtime::HostCopy& copy : copies) {
    const hardware::RateGrid* rate =
        rates.find(join_text("transfer.", copy.is_to_device ? "to_device" : "to_host", ".",
                             copy.is_pinned ? "pinned" : "pageable"));
    if (!rate) return {};
    seconds.push_back(rates.number("launch") + static_cast<double>(copy.bytes) / rate->at({}));
  }
  return seconds;
}

// The roof of the arithmetic that a kernel computes in.
double peak_of(const compiler::Kernel& kernel, const hardware::Rates& rates) {
  const std::string_view arithmetic = cost::class_of(kernel) == cost::KernelClass::contraction
                                          ? cost::arithmetic_name(kernel)
                                          : std::string_view();
  const hardware::RateGrid* own =
      arithmetic.empty() ? nullptr : rates.find(join_text("peak.", arithmetic));
  return own ? own->at({}) : rates.number("peak.f32");
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

std::string kernel_label(const compiler::Kernel& kernel) {
  const bool is_group = !kernel.members.empty() || (!kernel.op && !kernel.program);
  std::string name = shortened(kernel.name);
  // Those of a group have shapes of their own.
  if (is_group || kernel.outputs.empty()) return name;
  return join_text(name, " ", kernel.outputs[0].layout.shape);
}

StepTimes measure_steps(runtime::Executable& program, std::span<const Tensor> inputs,
                        const MeasureOptions& options) {
  check(options.steps >= 1, "profile: ", options.steps, " steps; use at least one");
  StepTimes times;
  for (int i = 0; i < 2; ++i) {  // the second is captured on a GPU
    program.run(inputs);
    program.wait();
  }
  std::vector<std::vector<double>> by_kernel(program.kernels().kernels.size());
  std::vector<std::vector<runtime::HostCopy>> copies;
  WholeSteps whole(program);
  for (int i = 0; i < options.steps; ++i) {
    if (options.between) options.between();
    whole.keep_device_busy(inputs);
    program.run_timed(inputs, times.last);
    for (size_t k = 0; k < by_kernel.size(); ++k) by_kernel[k].push_back(times.last.seconds[k]);
    copies.push_back(times.last.copies);
    whole.run(inputs);
  }
  for (std::vector<double>& seconds : by_kernel) times.kernel_seconds.push_back(median(seconds));
  times.step_seconds = whole.step_seconds();
  if (whole.is_gpu()) times.gpu = gpu_times(program, whole, copies);
  return times;
}

Profile make_profile(const compiler::KernelList& list, const compiler::MemoryPlan& plan,
                     const StepTimes& times, const hardware::Rates& rates) {
  invariant(times.kernel_seconds.size() == list.kernels.size(), "a profile of ",
            list.kernels.size(), " kernels needs as many times, not ", times.kernel_seconds.size());
  const cost::Prediction prediction = cost::predict(list, plan, rates);
  Profile profile{.kernels = {},
                  .step_seconds = times.step_seconds,
                  .predicted_seconds = prediction.seconds(),
                  .calibrated = rates.calibrated,
                  .rates_source = rates.source,
                  .gpu = times.gpu};
  if (times.gpu) profile.predicted_copies = predict_copies(times.gpu->copies, rates);
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    const compiler::Kernel& kernel = list.kernels[k];
    const cost::KernelPrediction& price = prediction.kernels[k];
    profile.kernels.push_back(
        {.label = kernel_label(kernel),
         .kernel_class = cost::class_of(kernel),
         .phase = kernel.phase,
         .flops = kernel.cost.flops,
         .bytes = kernel.cost.bytes_read + kernel.cost.bytes_written,
         .seconds = times.kernel_seconds[k],
         .begin = times.last.begin[k],
         .measured_once = times.last.seconds[k],
         .predicted = price,
         .roof_seconds = std::max(static_cast<double>(kernel.cost.flops) / peak_of(kernel, rates),
                                  price.memory),
         .tensor_cores = times.gpu ? cost::tensor_cores_of(kernel, times.gpu->generation)
                                   : std::optional<kernels::TensorCoreUse>()});
    profile.kernel_seconds += times.kernel_seconds[k];
    profile.predicted_overhead += price.overhead;
  }
  return profile;
}

double Profile::copy_seconds() const {
  double seconds = 0;
  for (const runtime::HostCopy& copy : gpu ? gpu->copies : std::vector<runtime::HostCopy>())
    seconds += copy.seconds;
  return seconds;
}

double Profile::gap_seconds() const {
  return gpu ? gpu->device_seconds - kernel_seconds - copy_seconds() : 0;
}

double Profile::host_seconds() const { return gpu ? step_seconds - gpu->device_seconds : 0; }

cost::Regime ProfileRow::regime() const {
  const auto* largest = std::max_element(std::begin(in_regime), std::end(in_regime));
  return static_cast<cost::Regime>(largest - std::begin(in_regime));
}

std::vector<ProfileRow> rows_by_label(const Profile& profile) {
  return longest_first(group(profile, [](const KernelProfile& kernel) { return kernel.label; }));
}

std::vector<ProfileRow> rows_by_class(const Profile& profile) {
  return longest_first(group(profile, [](const KernelProfile& kernel) {
    return std::string(cost::class_name(kernel.kernel_class));
  }));
}

std::vector<ProfileRow> rows_by_regime(const Profile& profile) {
  std::vector<ProfileRow> rows(cost::kRegimes);
  for (int r = 0; r < cost::kRegimes; ++r)
    rows[static_cast<size_t>(r)].label = cost::regime_name(static_cast<cost::Regime>(r));
  for (const KernelProfile& kernel : profile.kernels)
    add_to(rows[static_cast<size_t>(kernel.predicted.regime())], kernel);
  return rows;
}

std::vector<ProfileRow> rows_by_phase(const Profile& profile) {
  return group(profile, [](const KernelProfile& kernel) {
    return std::string(graph::phase_name(kernel.phase));
  });
}

}  // namespace brrr::plan
