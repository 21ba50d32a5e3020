// brrr compare: runs beside each other, by facts, losses, settings and curves.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/base/error.h"
#include "brrr/cli/commands.h"
#include "brrr/cli/exit_codes.h"
#include "brrr/io/atomic_file.h"
#include "brrr/report/config_differences.h"
#include "brrr/report/plot.h"
#include "brrr/report/run_facts.h"
#include "brrr/report/run_report.h"
#include "brrr/report/table.h"

namespace brrr::cli {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string html;
  std::optional<double> within;
  bool json = false;
};

// How far losses of the same step are apart, at most, as a part of the first run's.
struct LossDistance {
  double part = 0;
  int64_t step = 0;  // where
  size_t steps = 0;  // that were compared
};

LossDistance loss_distance(const std::vector<report::NamedRun>& runs) {
  LossDistance farthest;
  std::map<int64_t, double> first;
  for (const runs::StepRecord& record : runs[0].run.steps) first[record.step] = record.loss;
  for (size_t i = 1; i < runs.size(); ++i) {
    for (const runs::StepRecord& record : runs[i].run.steps) {
      const auto found = first.find(record.step);
      if (found == first.end()) continue;
      ++farthest.steps;
      const double part = std::abs(record.loss - found->second) / std::abs(found->second);
      if (part > farthest.part || std::isnan(part))
        farthest.part = std::isnan(part) ? INFINITY : part, farthest.step = record.step;
    }
  }
  return farthest;
}

std::vector<report::NamedRun> read_runs(const Options& options) {
  std::vector<report::NamedRun> runs;
  for (const std::string& folder : options.runs)
    runs.push_back({.name = folder, .run = runs::read_run_log(folder)});
  return runs;
}

// Only where every run has its settings: else the absence of a file would look like a difference.
std::vector<report::ConfigDifference> differences_of(const Options& options) {
  std::vector<report::NamedConfig> configs;
  for (const std::string& folder : options.runs) {
    const std::filesystem::path path = std::filesystem::path(folder) / "config.toml";
    std::ifstream file(path, std::ios::binary);
    if (!file) return {};
    configs.push_back({.name = path.string(), .text = {std::istreambuf_iterator<char>(file), {}}});
  }
  return report::config_differences(configs);
}

// The curves with one scale: the same loss is at the same height, the same step at the same place.
std::string curves(const std::vector<report::NamedRun>& runs) {
  constexpr int kLineWidth = 110, kMargin = 12;
  std::vector<std::vector<double>> losses;
  size_t longest = 0;
  double low = INFINITY, high = -INFINITY;
  for (const report::NamedRun& named : runs) {
    std::vector<double> raw;
    for (const runs::StepRecord& record : named.run.steps) raw.push_back(record.loss);
    losses.push_back(
        runs::running_mean(raw, std::max(1.0, 0.01 * static_cast<double>(raw.size()))));
    longest = std::max(longest, raw.size());
    for (double y : losses.back()) {
      if (!std::isfinite(y)) continue;
      low = std::min(low, y);
      high = std::max(high, y);
    }
  }
  if (!(low < high)) return "";
  const bool log = low > 0 && high > 5 * low;  // else what matters would be in the last line
  const int width = std::max(20, kLineWidth / static_cast<int>(runs.size()) - kMargin);
  std::vector<std::string> plots;
  for (size_t i = 0; i < runs.size(); ++i) {
    losses[i].resize(longest, NAN);
    std::string plot = report::line_plot(
        losses[i], {.width = width, .title = runs[i].name, .log_y = log, .y_range = {{low, high}}});
    // Values behind the end of a shorter run are absent by intent: no need for the note under the plot.
    if (const size_t note = plot.find(" values are not finite"); note != std::string::npos)
      plot.erase(plot.rfind('\n', note) + 1);
    plots.push_back(plot);
  }
  return "training loss, smoothed, by step\n" + report::side_by_side(plots);
}

void print_text(const std::vector<report::NamedRun>& runs,
                const std::vector<report::ConfigDifference>& differences) {
  std::vector<std::string> header{""};
  for (const report::NamedRun& named : runs) header.push_back(named.name);
  report::Table facts(header);
  for (const report::ComparedFact& fact : report::compared_facts(runs)) {
    std::vector<std::string> row{fact.name};
    row.insert(row.end(), fact.values.begin(), fact.values.end());
    facts.add_row(row);
  }
  fmt::print("{}\n", facts.text());
  if (!differences.empty()) {
    report::Table table(header, "settings that differ");
    for (const report::ConfigDifference& difference : differences) {
      std::vector<std::string> row{difference.key};
      for (const std::string& value : difference.values) row.push_back(value.empty() ? "-" : value);
      table.add_row(row);
    }
    fmt::print("{}\n", table.text());
  }
  fmt::print("{}", curves(runs));
  const LossDistance distance = loss_distance(runs);
  if (distance.steps > 0)
    fmt::print("\nlosses of {} steps in common are {} apart at most{}\n", distance.steps,
               distance.part == 0 ? "0" : fmt::format("{:.2e} of their size", distance.part),
               distance.part == 0 ? ": equal to the last bit"
                                  : fmt::format(", at step {}", distance.step));
}

nlohmann::json to_json(const std::vector<report::NamedRun>& runs,
                       const std::vector<report::ConfigDifference>& differences) {
  const LossDistance distance = loss_distance(runs);
  nlohmann::json result = {{"runs", nlohmann::json::array()},
                           {"largest_loss_difference", distance.part},
                           {"at_step", distance.step},
                           {"steps_compared", distance.steps},
                           {"differences", nlohmann::json::object()}};
  for (const report::NamedRun& named : runs) {
    const runs::LearningRegime learning = runs::judge_learning(named.run);
    nlohmann::json run = {{"run", named.name},
                          {"status", named.run.facts.status},
                          {"steps", named.run.steps.empty() ? 0 : named.run.steps.back().step},
                          {"parameters", named.run.facts.parameters},
                          {"seconds", named.run.facts.seconds},
                          {"learning", runs::learning_name(learning.kind)}};
    for (const auto& point : runs::evaluation_points(named.run))
      run["evaluations"].push_back({{"step", point.step},
                                    {"train_loss", point.train},
                                    {"validation_loss", point.validation}});
    result["runs"].push_back(run);
  }
  for (const report::ConfigDifference& difference : differences)
    result["differences"][difference.key] = difference.values;
  return result;
}

void check_within(const LossDistance& distance, double within) {
  if (distance.steps == 0) throw CheckFailed("the runs have no step in common");
  if (distance.part > within)
    throw CheckFailed(
        fmt::format("losses are {:.2e} of their size apart at step {}, more than {:.2e}",
                    distance.part, distance.step, within));
}

void run_compare(const Options& options) {
  check(options.runs.size() >= 2, "compare needs two runs or more: brrr compare runs/a runs/b");
  const std::vector<report::NamedRun> runs = read_runs(options);
  const std::vector<report::ConfigDifference> differences = differences_of(options);
  if (!options.html.empty())
    write_file_atomically(options.html, report::compared_report_html(runs));
  if (options.json) {
    std::puts(to_json(runs, differences)
                  .dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
                  .c_str());
  } else {
    print_text(runs, differences);
    if (!options.html.empty()) fmt::print("\nwritten: {}\n", options.html);
  }
  if (options.within) check_within(loss_distance(runs), *options.within);
}

}  // namespace

void add_compare(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("compare", "Put runs beside each other: results, settings and curves");
  const auto options = std::make_shared<Options>();
  command->add_option("runs", options->runs, "The folders of two runs or more")->required();
  command->add_option("--within", options->within,
                      "End with 1 where losses of the same step are farther apart: 0, 1e-4, ...");
  command->add_option("--html", options->html,
                      "Write a page with the curves of all runs to this file");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  brrr compare runs/stories runs/stories-2\n"
      "  brrr compare runs/small runs/large --html compared.html\n"
      "  brrr compare runs/once runs/again --within 0");
  command->callback([options] { run_compare(*options); });
}

}  // namespace brrr::cli
