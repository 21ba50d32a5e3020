#include "brrr/report/gpu_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "brrr/base/units.h"
#include "brrr/report/table.h"

namespace brrr::report {
namespace {

using nlohmann::json;

std::string milliseconds(double seconds) { return fmt::format("{:.3f}", 1e3 * seconds); }
double part(double of, double all) { return all > 0 ? of / all : 0; }

const char* direction(const runtime::HostCopy& copy) {
  return copy.is_to_device ? "host to device" : "device to host";
}
const char* memory(const runtime::HostCopy& copy) { return copy.is_pinned ? "pinned" : "pageable"; }
double bytes_per_second(const runtime::HostCopy& copy) {
  return copy.seconds > 0 ? static_cast<double>(copy.bytes) / copy.seconds : 0;
}

double gap_per_kernel(const plan::Profile& p) {
  return p.kernels.empty() ? 0 : p.gap_seconds() / static_cast<double>(p.kernels.size());
}

std::string split_table(const plan::Profile& p, const plan::GpuStepTimes& gpu) {
  Table table({"where the step goes", "ms", "%", "predicted", ""});
  const auto line = [&](const char* what, double seconds, const std::string& predicted,
                        const std::string& note) {
    table.row(what, milliseconds(seconds),
              fmt::format("{:.1f}", 100 * part(seconds, p.step_seconds)), predicted, note);
  };
  line("kernels", p.kernel_seconds, milliseconds(p.predicted_seconds - p.predicted_overhead),
       fmt::format("{} kernels", p.kernels.size()));
  line("copies between host and device", p.copy_seconds(), "",
       fmt::format("{} copies", gpu.copies.size()));
  line("overhead: gaps between them on the GPU", p.gap_seconds(),
       milliseconds(p.predicted_overhead),
       fmt::format("{:.2f} us a kernel", 1e6 * gap_per_kernel(p)));
  line("overhead: the host, before and behind", p.host_seconds(), "",
       fmt::format("{} launches of captured graphs; hidden where the host is ahead", gpu.launches));
  table.rule();
  line("step, waited for", p.step_seconds, milliseconds(p.predicted_seconds), "");
  std::string text = table.text();
  // Short kernels that the host launches one by one wait for it; in a graph they do not.
  if (p.gap_seconds() < 0)
    text += "Gaps are negative: with clocks around them, kernels took longer than in the graph.\n";
  return text;
}

std::string copies_table(const plan::GpuStepTimes& gpu, const std::vector<double>& predicted) {
  if (gpu.copies.empty())
    return "No copy between host and device: inputs were on the device and stay there.\n";
  Table table(
      {"copies between host and device", "host memory", "bytes", "ms", "GB/s", "predicted"});
  for (size_t i = 0; i < gpu.copies.size(); ++i) {
    const runtime::HostCopy& copy = gpu.copies[i];
    table.row(direction(copy), memory(copy), with_commas(copy.bytes), milliseconds(copy.seconds),
              fmt::format("{:.1f}", bytes_per_second(copy) / 1e9),
              i < predicted.size() ? milliseconds(predicted[i]) : "");
  }
  return table.text();
}

// Products and attention, those that tensor cores do not take in full with the reason.
std::string tensor_cores_table(const plan::Profile& p) {
  double all = 0, full = 0;
  Table table({"not in full on tensor cores", "calls", "ms", "how", "why"});
  bool has_rows = false;
  for (const plan::ProfileRow& row : plan::rows_by_label(p)) {
    if (!row.tensor_cores) continue;
    all += row.seconds;
    if (row.tensor_cores->how == kernels::TensorCores::full) {
      full += row.seconds;
      continue;
    }
    has_rows = true;
    table.row(row.label, row.calls, milliseconds(row.seconds), row.tensor_cores->mark(),
              row.tensor_cores->reason);
  }
  const std::string sum =
      fmt::format("Tensor cores in full: {:.1f} % of the time of products and attention.\n",
                  100 * part(full, all));
  return has_rows ? table.text() + sum : sum;
}

}  // namespace

std::string gpu_step_text(const plan::Profile& profile) {
  const plan::GpuStepTimes gpu = profile.gpu.value_or(plan::GpuStepTimes{});
  return split_table(profile, gpu) + "\n" + copies_table(gpu, profile.predicted_copies) + "\n" +
         tensor_cores_table(profile);
}

json gpu_step_json(const plan::Profile& profile) {
  const plan::GpuStepTimes gpu = profile.gpu.value_or(plan::GpuStepTimes{});
  json copies = json::array();
  const std::vector<double>& predicted = profile.predicted_copies;
  for (size_t i = 0; i < gpu.copies.size(); ++i) {
    const runtime::HostCopy& copy = gpu.copies[i];
    copies.push_back({{"direction", direction(copy)},
                      {"host_memory", memory(copy)},
                      {"bytes", copy.bytes},
                      {"seconds", copy.seconds},
                      {"bytes_per_second", bytes_per_second(copy)}});
    if (i < predicted.size()) copies.back()["predicted_seconds"] = predicted[i];
  }
  return {{"device_seconds", gpu.device_seconds},
          {"copies", copies},
          {"copy_seconds", profile.copy_seconds()},
          {"gap_seconds", profile.gap_seconds()},
          {"gap_seconds_per_kernel", gap_per_kernel(profile)},
          {"host_seconds", profile.host_seconds()},
          {"host_launches", gpu.launches},
          {"predicted_overhead_seconds", profile.predicted_overhead}};
}

}  // namespace brrr::report
