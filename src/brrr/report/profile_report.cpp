#include "brrr/report/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "brrr/base/units.h"
#include "brrr/report/gpu_state.h"
#include "brrr/report/gpu_step.h"
#include "brrr/report/table.h"

namespace brrr::report {
namespace {

using nlohmann::json;

std::string percent(double part) { return fmt::format("{:.1f}", 100 * part); }
std::string milliseconds(double seconds) { return fmt::format("{:.3f}", 1e3 * seconds); }
std::string giga(double amount, double seconds) {
  return seconds > 0 ? fmt::format("{:.1f}", amount / seconds / 1e9) : "";
}
double part(double of, double all) { return all > 0 ? of / all : 0; }

plan::ProfileRow total_of(const std::vector<plan::ProfileRow>& rows, std::string label) {
  plan::ProfileRow total{.label = std::move(label)};
  for (const plan::ProfileRow& row : rows) {
    total.calls += row.calls;
    total.flops += row.flops;
    total.bytes += row.bytes;
    total.seconds += row.seconds;
    total.predicted += row.predicted;
    total.roof += row.roof;
    for (int r = 0; r < cost::kRegimes; ++r) total.in_regime[r] += row.in_regime[r];
  }
  return total;
}

const std::vector<std::string> kColumns = {"",       "calls",     "ms",       "%",
                                           "MFLOP",  "MB",        "GFLOP/s",  "GB/s",
                                           "% roof", "predicted", "residual", "bound by"};

std::vector<std::string> cells_of(const plan::ProfileRow& row, double all_seconds) {
  return {row.label,
          std::to_string(row.calls),
          milliseconds(row.seconds),
          percent(part(row.seconds, all_seconds)),
          fmt::format("{:.2f}", static_cast<double>(row.flops) / 1e6),
          fmt::format("{:.2f}", static_cast<double>(row.bytes) / 1e6),
          giga(static_cast<double>(row.flops), row.seconds),
          giga(static_cast<double>(row.bytes), row.seconds),
          percent(part(row.roof, row.seconds)),
          milliseconds(row.predicted),
          fmt::format("{:+.3f}", 1e3 * (row.seconds - row.predicted)),
          std::string(cost::regime_name(row.regime()))};
}

// Kernels of one label, on a GPU with how their products are multiplied.
class KernelsTable {
 public:
  KernelsTable(std::string title, bool has_tensor_cores)
      : table_(columns(has_tensor_cores), std::move(title)), has_tensor_cores_(has_tensor_cores) {}
  void add(const plan::ProfileRow& row, double all_seconds) {
    std::vector<std::string> cells = cells_of(row, all_seconds);
    if (has_tensor_cores_) cells.push_back(row.tensor_cores ? row.tensor_cores->mark() : "");
    table_.add_row(std::move(cells));
  }
  void rule() { table_.rule(); }
  std::string text() const { return table_.text(); }

 private:
  static std::vector<std::string> columns(bool has_tensor_cores) {
    std::vector<std::string> names = kColumns;
    if (has_tensor_cores) names.emplace_back("tensor cores");
    return names;
  }
  Table table_;
  bool has_tensor_cores_;
};

std::string kernels_table(const plan::Profile& profile, int most) {
  const std::vector<plan::ProfileRow> rows = plan::rows_by_label(profile);
  const auto shown = std::min(rows.size(), static_cast<size_t>(std::max(1, most)));
  KernelsTable table("kernels, the longest first (times in ms)", profile.gpu.has_value());
  for (size_t i = 0; i < shown; ++i) table.add(rows[i], profile.kernel_seconds);
  if (shown < rows.size()) {
    const std::vector<plan::ProfileRow> others(rows.begin() + static_cast<std::ptrdiff_t>(shown),
                                               rows.end());
    table.add(total_of(others, join_text(others.size(), " other kinds")), profile.kernel_seconds);
  }
  table.rule();
  table.add(total_of(rows, "all kernels"), profile.kernel_seconds);
  return table.text();
}

std::string regimes_table(const plan::Profile& profile) {
  KernelsTable table("by what bounds them", false);
  for (const plan::ProfileRow& row : plan::rows_by_regime(profile))
    table.add(row, profile.kernel_seconds);
  return table.text();
}

std::string classes_table(const plan::Profile& profile) {
  const std::vector<plan::ProfileRow> rows = plan::rows_by_class(profile);
  const plan::ProfileRow all = total_of(rows, "");
  Table table({"class", "calls", "% of FLOPs", "% of time", "% of bytes"},
              "where FLOPs and time go");
  for (const plan::ProfileRow& row : rows)
    table.row(row.label, row.calls,
              percent(part(static_cast<double>(row.flops), static_cast<double>(all.flops))),
              percent(part(row.seconds, all.seconds)),
              percent(part(static_cast<double>(row.bytes), static_cast<double>(all.bytes))));
  return table.text();
}

std::string residuals_table(const plan::Profile& profile) {
  constexpr size_t kShown = 5;
  std::vector<plan::ProfileRow> rows = plan::rows_by_label(profile);
  const auto residual = [](const plan::ProfileRow& row) {
    return std::abs(row.seconds - row.predicted);
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const plan::ProfileRow& a, const plan::ProfileRow& b) {
                     return residual(a) > residual(b);
                   });
  Table table({"largest residuals", "measured", "predicted", "measured / predicted"});
  for (size_t i = 0; i < std::min(kShown, rows.size()); ++i)
    table.row(rows[i].label, to_text(Seconds(rows[i].seconds)), to_text(Seconds(rows[i].predicted)),
              fmt::format("{:.2f}", part(rows[i].seconds, rows[i].predicted)));
  return table.text();
}

std::string batch_text(const BatchTest& test) {
  const double fixed = std::max(0.0, test.fixed());
  return fmt::format(
      "twice the batch ({} to {}): {} to {}, {:.2f}x; {} of a step does not grow with the batch, "
      "update left out: {}\n",
      test.batch, 2 * test.batch, to_text(Seconds(test.once)), to_text(Seconds(test.twice)),
      test.growth(), to_text(Seconds(fixed)),
      fixed > 0.5 * test.once ? "overhead-bound, use a larger batch" : "not overhead-bound");
}

json row_json(const plan::ProfileRow& row) {
  json item{{"name", row.label},        {"calls", row.calls},
            {"seconds", row.seconds},   {"predicted_seconds", row.predicted},
            {"flops", row.flops},       {"bytes", row.bytes},
            {"roof_seconds", row.roof}, {"regime", cost::regime_name(row.regime())}};
  if (const std::optional<kernels::TensorCoreUse>& use = row.tensor_cores)
    item["tensor_cores"] = {{"used", use->how != kernels::TensorCores::none},
                            {"in_full", use->how == kernels::TensorCores::full},
                            {"arithmetic", use->arithmetic},
                            {"reason", use->reason}};
  return item;
}

json rows_json(const std::vector<plan::ProfileRow>& rows) {
  json list = json::array();
  for (const plan::ProfileRow& row : rows) list.push_back(row_json(row));
  return list;
}

json counterfactuals_json(const std::vector<plan::Counterfactual>& items) {
  json list = json::array();
  for (const plan::Counterfactual& item : items)
    list.push_back({{"change", item.change}, {"saves_seconds", item.saves_seconds}});
  return list;
}

}  // namespace

std::string profile_text(const ProfileReport& report, const ProfileTextOptions& options) {
  const plan::Profile& p = report.profile;
  std::string out = report.title + "\n";
  out += fmt::format("step {} measured, {} predicted ({:+.1f} %{}); kernels {} of it\n\n",
                     to_text(Seconds(p.step_seconds)), to_text(Seconds(p.predicted_seconds)),
                     100 * (part(p.predicted_seconds, p.step_seconds) - 1),
                     p.calibrated ? "" : ", uncalibrated", to_text(Seconds(p.kernel_seconds)));
  out += kernels_table(p, options.rows) + "\n" + regimes_table(p) + "\n" + classes_table(p) + "\n" +
         residuals_table(p) + "\n" + (p.gpu ? gpu_step_text(p) + "\n" : "") +
         plan::to_text(report.advice);
  if (report.gpu_load) out += join_text("\n", gpu_load_text(*report.gpu_load));
  if (report.batch_test) out += join_text("\n", batch_text(*report.batch_test));
  if (report.what_if)
    out +=
        fmt::format("\nwhat if {}: {} instead of {} predicted ({:+.1f} %)\n", report.what_if->first,
                    to_text(Seconds(report.what_if->second)), to_text(Seconds(p.predicted_seconds)),
                    100 * (part(report.what_if->second, p.predicted_seconds) - 1));
  return out + join_text("\nrates: ", p.rates_source,
                         p.calibrated ? "\n" : " (uncalibrated: run `brrr calibrate`)\n");
}

std::string profile_json(const ProfileReport& report) {
  const plan::Profile& p = report.profile;
  json file{{"title", report.title},
            {"step_seconds", p.step_seconds},
            {"kernel_seconds", p.kernel_seconds},
            {"predicted_seconds", p.predicted_seconds},
            {"calibrated", p.calibrated},
            {"rates", p.rates_source},
            {"kernels", rows_json(plan::rows_by_label(p))},
            {"classes", rows_json(plan::rows_by_class(p))},
            {"regimes", rows_json(plan::rows_by_regime(p))},
            {"phases", rows_json(plan::rows_by_phase(p))},
            {"fusions", counterfactuals_json(report.advice.fusions)},
            {"resources", counterfactuals_json(report.advice.resources)}};
  if (report.gpu_load) file["gpu"] = gpu_load_json(*report.gpu_load);
  if (p.gpu) file["gpu_step"] = gpu_step_json(p);
  if (report.batch_test)
    file["batch_test"] = {{"batch", report.batch_test->batch},
                          {"seconds", report.batch_test->once},
                          {"seconds_at_twice", report.batch_test->twice},
                          {"update_seconds", report.batch_test->update_once}};
  if (report.what_if)
    file["what_if"] = {{"change", report.what_if->first},
                       {"predicted_seconds", report.what_if->second}};
  return file.dump(1);
}

std::string profile_trace(const plan::Profile& profile) {
  enum Track { kMeasured = 1, kPredicted = 2 };
  json events = json::array();
  const auto name_track = [&](int track, const char* name) {
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", 1},
                      {"tid", track},
                      {"args", {{"name", name}}}});
  };
  name_track(kMeasured, "measured");
  name_track(kPredicted, "predicted");
  const auto add = [&](const plan::KernelProfile& kernel, int track, double begin, double seconds) {
    events.push_back({{"ph", "X"},
                      {"name", kernel.label},
                      {"cat", graph::phase_name(kernel.phase)},
                      {"pid", 1},
                      {"tid", track},
                      {"ts", begin * 1e6},
                      {"dur", seconds * 1e6},
                      {"args",
                       {{"flops", kernel.flops},
                        {"bytes", kernel.bytes},
                        {"family", kernel.predicted.family},
                        {"bound by", cost::regime_name(kernel.predicted.regime())}}}});
  };
  double now = 0;
  for (const plan::KernelProfile& kernel : profile.kernels) {
    add(kernel, kMeasured, kernel.begin, kernel.measured_once);
    add(kernel, kPredicted, now, kernel.predicted.seconds());
    now += kernel.predicted.seconds();
  }
  return json{{"displayTimeUnit", "ms"}, {"traceEvents", events}}.dump();
}

}  // namespace brrr::report
