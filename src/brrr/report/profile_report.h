// A profile as tables, as JSON, and as a timeline for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once

#include <optional>
#include <string>

#include "brrr/device/gpu_watch.h"
#include "brrr/plan/advice.h"
#include "brrr/plan/profile.h"

namespace brrr::report {

// The step at a batch and at twice the batch. What does not grow with the batch is overhead, or the
// update of the parameters, which is measured and taken off.
struct BatchTest {
  int64_t batch = 0;
  double once = 0, twice = 0;  // seconds of a step
  double update_once = 0;      // of which the update took, at the smaller batch
  double growth() const { return twice / once; }
  double fixed() const { return 2 * once - twice - update_once; }  // at a batch of zero
};

struct ProfileReport {
  std::string title;
  plan::Profile profile;
  plan::Advice advice;
  std::optional<GpuLoad> gpu_load = {};  // absent on the cpu
  std::optional<BatchTest> batch_test;
  std::optional<std::pair<std::string, double>> what_if;  // as asked, and the seconds predicted
};

struct ProfileTextOptions {
  int rows = 20;  // of kernels; the others are summed up
};
std::string profile_text(const ProfileReport& report, const ProfileTextOptions& options = {});
std::string profile_json(const ProfileReport& report);
// One track as measured, one as predicted.
std::string profile_trace(const plan::Profile& profile);

}  // namespace brrr::report
