// brrr doctor: how a run learns and what bounds its speed, finished or still running, and what to do next.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/base/error.h"
#include "brrr/cli/commands.h"
#include "brrr/report/plot.h"
#include "brrr/report/run_facts.h"
#include "brrr/report/run_report.h"
#include "brrr/report/table.h"
#include "brrr/run/learning_regime.h"
#include "brrr/run/speed_regime.h"

namespace brrr::cli {
namespace {

struct Options {
  std::string run;
  bool json = false, plot = false, report = false;
};

// Seconds since the log was written last; 0 where there is none.
double silence(const std::filesystem::path& folder) {
  std::error_code missing;
  const auto written = std::filesystem::last_write_time(folder / "log.jsonl", missing);
  if (missing) return 0;
  const auto age = std::filesystem::file_time_type::clock::now() - written;
  return std::chrono::duration<double>(age).count();
}

// A run that says it is running and has not written for long has been killed.
bool seems_dead(const runs::RunLog& run, const runs::SpeedRegime& speed, double silent_seconds) {
  constexpr double kLeastSilence = 300, kManySteps = 30;
  const double patience = std::max(
      kLeastSilence, std::isfinite(speed.step_seconds) ? kManySteps * speed.step_seconds : 0);
  return run.facts.status == "running" && silent_seconds > patience;
}

nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

nlohmann::json learning_json(const runs::LearningRegime& learning) {
  return {{"kind", runs::learning_name(learning.kind)},
          {"since_step", learning.since_step},
          {"best_step", learning.best_step},
          {"train_loss", number(learning.train_loss)},
          {"validation_loss", number(learning.validation_loss)},
          {"best_validation_loss", number(learning.best_validation_loss)},
          {"noise", learning.noise},
          {"regularisation_could_help", learning.regularisation_could_help},
          {"what", learning.what},
          {"why", learning.why},
          {"regularisation", learning.regularisation},
          {"capacity", learning.capacity},
          {"next", learning.next}};
}

nlohmann::json speed_json(const runs::SpeedRegime& speed) {
  return {
      {"step_seconds", number(speed.step_seconds)},
      {"predicted_step_seconds", speed.predicted_step_seconds},
      {"tokens_per_second", number(speed.tokens_per_second)},
      {"mfu", speed.mfu},
      {"slowdown", number(speed.slowdown)},
      {"share",
       {{"compute", speed.share[0]}, {"bandwidth", speed.share[1]}, {"overhead", speed.share[2]}}},
      {"what", speed.what},
      {"why", speed.why},
      {"next", speed.next}};
}

void print_text(const Options& options, const runs::RunLog& run,
                const runs::LearningRegime& learning, const runs::SpeedRegime& speed, bool dead) {
  report::Table table(
      {"", ""},
      fmt::format("{}: {}{}", run.facts.name.empty() ? options.run : run.facts.name,
                  run.facts.status, run.facts.reason.empty() ? "" : ", " + run.facts.reason));
  for (const report::RunFact& fact : report::headline_facts(run)) table.row(fact.name, fact.value);
  fmt::print("{}\n", table.text());
  if (dead)
    fmt::print(
        "It says that it is running, but wrote nothing for {}: its process seems to be gone.\n"
        "Go on with: brrr train --resume --out {}\n\n",
        to_text(Seconds(silence(options.run))), options.run);
  if (options.plot && !run.steps.empty()) {
    std::vector<double> losses;
    for (const runs::StepRecord& record : run.steps) losses.push_back(record.loss);
    fmt::print("{}\n",
               report::line_plot(runs::running_mean(losses, 3), {.title = "training loss"}));
  }
  fmt::print("Learning\n{}\nSpeed\n{}", runs::to_text(learning), runs::to_text(speed));
}

void run_doctor(const Options& options) {
  const runs::RunLog run = runs::read_run_log(options.run);
  const runs::LearningRegime learning = runs::judge_learning(run);
  const runs::SpeedRegime speed = runs::judge_speed(run);
  const bool dead = seems_dead(run, speed, silence(options.run));
  if (options.report) report::write_run_report(options.run);
  if (!options.json) {
    print_text(options, run, learning, speed, dead);
    return;
  }
  const nlohmann::json result = {{"run", options.run},
                                 {"status", run.facts.status},
                                 {"seems_dead", dead},
                                 {"steps", run.steps.empty() ? 0 : run.steps.back().step},
                                 {"learning", learning_json(learning)},
                                 {"speed", speed_json(speed)}};
  std::puts(result.dump(1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Say how a run learns and what bounds its speed, finished or still running");
  const auto options = std::make_shared<Options>();
  command->add_option("run", options->run, "The folder of the run")->required();
  command->add_flag("--plot", options->plot, "Draw the training loss");
  command->add_flag("--report", options->report,
                    "Write RUN/report.html anew, also while the run goes on");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  brrr doctor runs/stories\n"
      "  brrr doctor runs/stories --report      # and open runs/stories/report.html\n"
      "  brrr doctor runs/stories --json | jq .learning.kind");
  command->callback([options] { run_doctor(*options); });
}

}  // namespace brrr::cli
