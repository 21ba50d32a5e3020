// A step that ran beside the step as it was predicted, kernel by kernel.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "brrr/cost/kernel_family.h"
#include "brrr/cost/predict.h"
#include "brrr/cost/tensor_core_use.h"
#include "brrr/runtime/executable.h"

namespace brrr::plan {

// What only a step on a GPU has.
struct GpuStepTimes {
  kernels::GpuGeneration generation;
  double device_seconds =
      0;  // of a replayed step by the GPU's clock, copies included, host ahead; the median
  std::vector<runtime::HostCopy> copies;  // medians
  int64_t launches = 0;                   // by the host, for a replayed step
};

struct StepTimes {
  std::vector<double> kernel_seconds;  // medians over the steps
  runtime::KernelTimes last;           // of one step, for a timeline
  double step_seconds = 0;             // median of whole steps without clocks inside
  std::optional<GpuStepTimes> gpu = {};
};

struct MeasureOptions {
  int steps = 5;
  std::function<void()> between = {};  // before every step: a round of calibration, say
};
// One step to warm up, then steps with and without clocks in turn.
StepTimes measure_steps(runtime::Executable& program, std::span<const Tensor> inputs,
                        const MeasureOptions& options = {});

struct KernelProfile {
  std::string label;  // "linear [256, 3072]"
  cost::KernelClass kernel_class = cost::KernelClass::other;
  graph::Phase phase = graph::Phase::forward;
  int64_t flops = 0, bytes = 0;
  double seconds = 0;                   // measured, the median
  double begin = 0, measured_once = 0;  // in one step, for a timeline
  cost::KernelPrediction predicted;
  double roof_seconds =
      0;  // at the machine's peak of arithmetic, and at the bandwidth of its bytes
  std::optional<kernels::TensorCoreUse> tensor_cores = {};  // of products and attention on a GPU
};

struct Profile {
  std::vector<KernelProfile> kernels;  // in the order in which they run
  double step_seconds = 0;             // measured, without clocks inside
  double kernel_seconds = 0;           // the sum over kernels
  double predicted_seconds = 0;
  bool calibrated = false;
  std::string rates_source;
  std::optional<GpuStepTimes> gpu = {};
  double predicted_overhead = 0;  // launches, part of predicted_seconds
  std::vector<double> predicted_copies =
      {};  // seconds of gpu->copies, where the rates have the bus

  double copy_seconds() const;
  // On a GPU: of the time in which the replayed step was on the device, what is neither kernel nor copy.
  double gap_seconds() const;
  // What the host took before and behind that.
  double host_seconds() const;
};
Profile make_profile(const compiler::KernelList& list, const compiler::MemoryPlan& plan,
                     const StepTimes& times, const hardware::Rates& rates);

// Kernels of one label together.
struct ProfileRow {
  std::string label;
  int calls = 0;
  int64_t flops = 0, bytes = 0;
  double seconds = 0, predicted = 0, roof = 0;
  double in_regime[cost::kRegimes] = {};  // predicted seconds by what bounds them
  std::optional<kernels::TensorCoreUse> tensor_cores =
      {};  // of kernels of this label, the worst of them
  cost::Regime regime() const;
};
// The longest first.
std::vector<ProfileRow> rows_by_label(const Profile& profile);
std::vector<ProfileRow> rows_by_class(const Profile& profile);
std::vector<ProfileRow> rows_by_regime(const Profile& profile);  // compute, bandwidth, overhead
std::vector<ProfileRow> rows_by_phase(const Profile& profile);

// The name of a kernel, long chains shortened, with the shape of its first result.
std::string kernel_label(const compiler::Kernel& kernel);

}  // namespace brrr::plan
